package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/relock-go/relock/fence"
)

// inTx runs f in a transaction, at the database's default level if level is zero.
func (db database) inTx(ctx context.Context, level sql.IsolationLevel, f func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: level})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// check is a transaction that only compares.
func (db database) check(t *testing.T, resource string, token int64) error {
	return db.inTx(t.Context(), sql.LevelDefault, func(tx *sql.Tx) error { return db.Check(t.Context(), tx, resource, token) })
}

func TestAnOlderTokenIsRefusedAndNamed(t *testing.T) {
	onEach(t, func(t *testing.T, db database) {
		for _, row := range []struct {
			resource string
			token    int64
			stale    bool
		}{
			{"a", 9, false},
			{"a", 9, false},
			{"a", 10, false},
			{"a", 9, true},
			{"A", 1, false},
			{"a ", 1, false}, // other resources
			{strings.Repeat("r", 512), 1, false},
			{strings.Repeat("r", 511) + "s", 1, false}, // and each byte counts
			{"a", math.MaxInt64 - 1, false},
			{"a", math.MaxInt64, false},
			{"a", math.MaxInt64 - 1, true},
		} {
			err := db.check(t, row.resource, row.token)
			if errors.Is(err, fence.ErrStale) != row.stale || (err != nil) != row.stale {
				t.Errorf("%q, token %d: %v, want it refused: %v", row.resource, row.token, err, row.stale)
			}
		}
		err := db.check(t, "a", 7)
		for _, says := range []string{`"a"`, "token 7 ", "token 9223372036854775807 "} {
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%v, want %q in it", err, says)
			}
		}
		for _, none := range []int64{0, -1} {
			if err := db.check(t, "a", none); err == nil || errors.Is(err, fence.ErrStale) {
				t.Errorf("token %d: %v, want an error that is not ErrStale", none, err)
			}
		}
	})
}

func TestATransactionThatIsRolledBackAdvancesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, db database) {
		undone := errors.New("undone")
		if err := db.inTx(t.Context(), sql.LevelDefault, func(tx *sql.Tx) error {
			must(t, db.Check(t.Context(), tx, "a", 9))
			return undone
		}); !errors.Is(err, undone) {
			t.Fatal(err)
		}
		must(t, db.check(t, "a", 8))
	})
}

// The older transaction waits for the newer one, and is refused. Fails where the comparison locks no row.
func TestAnOlderTransactionWaitsAndIsRefused(t *testing.T) {
	onEach(t, func(t *testing.T, db database) {
		for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead} {
			name := level.String()
			if db.Dialect == fence.SQLite {
				level = sql.LevelDefault // it has one writer at a time
			}
			must(t, db.check(t, name, 1))
			older := make(chan error, 1)
			must(t, db.inTx(t.Context(), level, func(tx *sql.Tx) error {
				must(t, db.Check(t.Context(), tx, name, 9))
				began := make(chan struct{})
				go func() {
					close(began)
					older <- db.inTx(t.Context(), level, func(tx *sql.Tx) error { return db.Check(t.Context(), tx, name, 8) })
				}()
				<-began
				return nil
			}))
			err := <-older
			if serial := db.Dialect == fence.PostgreSQL && level == sql.LevelRepeatableRead; err == nil || !serial && !errors.Is(err, fence.ErrStale) {
				t.Errorf("%v: %v, want ErrStale", level, err)
			}
		}
	})
}

// A transaction at REPEATABLE READ reads what it saw first, also where a later holder has committed since.
func TestAnEarlierReadDoesNotHideANewerToken(t *testing.T) {
	onEach(t, func(t *testing.T, db database) {
		if db.Dialect == fence.SQLite {
			return // it has one writer at a time: nobody commits in between
		}
		must(t, db.check(t, "a", 1))
		err := db.inTx(t.Context(), sql.LevelRepeatableRead, func(tx *sql.Tx) error {
			var seen int64
			must(t, tx.QueryRowContext(t.Context(), "SELECT token FROM relock_fences").Scan(&seen))
			must(t, db.check(t, "a", 9))
			return db.Check(t.Context(), tx, "a", 8)
		})
		if err == nil { // a database may end the transaction itself
			t.Error("token 8 passed after token 9")
		}
	})
}

// Eight writers, whose writes come late and in any order, first without a guard: so it is seen that they do go back.
func TestNoResourceGoesBackToAnOlderToken(t *testing.T) {
	onEach(t, func(t *testing.T, db database) {
		serial := map[fence.Dialect]string{
			fence.PostgreSQL: "BIGSERIAL PRIMARY KEY", fence.MySQL: "BIGINT AUTO_INCREMENT PRIMARY KEY", fence.SQLite: "INTEGER PRIMARY KEY AUTOINCREMENT",
		}[db.Dialect]
		insert := map[fence.Dialect]string{fence.MySQL: "INSERT INTO writes (token) VALUES (?)"}[db.Dialect]
		if insert == "" {
			insert = "INSERT INTO writes (token) VALUES ($1)"
		}
		must(t, statement(t, db, "CREATE TABLE writes (seq "+serial+", token BIGINT NOT NULL)"))
		if stale, back := db.late(t, insert, func(context.Context, *sql.Tx, string, int64) error { return nil }); !back || stale > 0 {
			t.Errorf("unguarded, the resource goes back: %v: the test shows nothing", back)
		}
		must(t, statement(t, db, "DELETE FROM writes"))
		if stale, back := db.late(t, insert, db.Check); back || stale == 0 {
			t.Errorf("an older token was written after a newer one: %v; %d were refused", back, stale)
		}
	})
}

// late has eight writers write 200 tokens in any order. It returns how many were refused, and whether any was written
// after a newer one.
func (db database) late(t *testing.T, insert string, guard func(context.Context, *sql.Tx, string, int64) error) (stale int, wentBack bool) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	tokens := rand.Perm(200)
	for writer := range 8 {
		wg.Go(func() {
			for i := writer; i < len(tokens); i += 8 {
				token := int64(tokens[i]) + 1
				err := db.inTx(t.Context(), sql.LevelReadCommitted*level(db.Dialect), func(tx *sql.Tx) error {
					if err := guard(t.Context(), tx, "r", token); err != nil {
						return err
					}
					_, err := tx.ExecContext(t.Context(), insert, token)
					return err
				})
				switch {
				case errors.Is(err, fence.ErrStale):
					mu.Lock()
					stale++
					mu.Unlock()
				case err != nil:
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	rows, err := db.QueryContext(t.Context(), "SELECT token FROM writes ORDER BY seq")
	must(t, err)
	defer func() { _ = rows.Close() }()
	for largest := int64(0); rows.Next(); {
		var token int64
		must(t, rows.Scan(&token))
		wentBack = wentBack || token < largest
		largest = max(largest, token)
	}
	must(t, rows.Err())
	return stale, wentBack
}

// level is 0 for a database that has no levels.
func level(d fence.Dialect) sql.IsolationLevel {
	if d == fence.SQLite {
		return 0
	}
	return 1
}

// Fails when a Dialect that was never set passes for one of the databases.
func TestAnUnknownDialectChecksNothingAndSaysSo(t *testing.T) {
	onEach(t, func(t *testing.T, db database) {
		for _, none := range []fence.Dialect{0, -1, fence.SQLite + 1} {
			err := db.inTx(t.Context(), sql.LevelDefault, func(tx *sql.Tx) error { return none.Check(t.Context(), tx, "a", 9) })
			if err == nil || errors.Is(err, fence.ErrStale) || !strings.Contains(err.Error(), none.String()) {
				t.Errorf("%v, want an error that names %v", err, none)
			}
			if none.Schema() != fence.PostgreSQL.Schema() || none.Schema() != fence.SQLite.Schema() {
				t.Errorf("the schema of %v is %s", none, none.Schema())
			}
		}
		must(t, db.check(t, "a", 8)) // no larger one is remembered
	})
}
