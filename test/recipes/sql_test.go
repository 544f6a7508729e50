package recipes_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	_ "modernc.org/sqlite" // written in Go: the test needs no database server

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/fence"
	"github.com/relock-go/relock/relocktest"
)

// deposit is called under the lock "account", however deep below.
func deposit(ctx context.Context, db *sql.DB, amount int) error {
	hold, ok := relock.FromContext(ctx, "account")
	if !ok {
		return errors.New("deposit is called without the lock")
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	if err := fence.SQLite.Check(ctx, tx, "account", hold.Token()); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE accounts SET balance = balance + $1 WHERE name = 'main'`, amount); err != nil {
		return err
	}
	return tx.Commit()
}

const tables = `
CREATE TABLE accounts (name TEXT PRIMARY KEY, balance BIGINT NOT NULL);
INSERT INTO accounts VALUES ('main', 0);`

func TestTableRefusesWhoWritesAfterALaterHolder(t *testing.T) {
	db := open(t)
	slow, next := twoHolders(t, "account")
	// The holder before does not look at its context, as code between two statements cannot.
	deaf := func(h *relock.Hold) context.Context { return context.WithoutCancel(h.Context(t.Context())) }
	if err := deposit(deaf(slow), db, 1); err != nil {
		t.Fatalf("nobody else has written: %v", err)
	}
	for _, amount := range []int{10, 100} {
		if err := deposit(deaf(next), db, amount); err != nil {
			t.Fatalf("its own token: %v", err)
		}
	}
	if err := deposit(deaf(slow), db, 1000); !errors.Is(err, fence.ErrStale) {
		t.Errorf("the holder before: %v, want that it is refused", err)
	}
	if err := deposit(t.Context(), db, 10_000); err == nil {
		t.Error("written without a lock")
	}
	if got := balance(t, db); got != 111 {
		t.Errorf("balance %d, want what was deposited under the lock, 111", got)
	}
}

// A transaction that fails after its fence leaves the token as it was, and the row free.
func TestTransactionThatFailsAdvancesNoToken(t *testing.T) {
	db := open(t)
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := fence.SQLite.Check(t.Context(), tx, "account", 7); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if tx, err = db.BeginTx(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := fence.SQLite.Check(t.Context(), tx, "account", 6); err != nil {
		t.Errorf("no later holder has written: %v", err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

// What a table stores of an owner to tell flows apart whose tokens are equal: a flow's branches have one token.
func TestBranchesAreOneOwnerUpToTheMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock, flow := relocktest.New(t).Client().NewLock("account"), relock.WithNewOwner(t.Context())
		above, err := lock.Acquire(flow)
		if err != nil {
			t.Fatal(err)
		}
		branch, err := lock.Acquire(relock.WithChildOwner(flow))
		if err != nil {
			t.Fatal(err)
		}
		root, _, below := strings.Cut(branch.Owner(), "~.")
		if branch.Token() != above.Token() || !below || root != above.Owner() {
			t.Errorf("owner %q with token %d under %q with %d", branch.Owner(), branch.Token(), above.Owner(), above.Token())
		}
		if err := errors.Join(branch.Release(), above.Release()); err != nil {
			t.Error(err)
		}
	})
}

func open(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "accounts.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.ExecContext(t.Context(), fence.SQLite.Schema()+";"+tables); err != nil {
		t.Fatal(err)
	}
	return db
}

func balance(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), `SELECT balance FROM accounts`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
