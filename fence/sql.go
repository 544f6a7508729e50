package fence

import (
	"context"
	"database/sql"
	"fmt"
)

// A Dialect says by which SQL Check compares tokens: that of PostgreSQL, MySQL or SQLite. With another value, such as
// zero, Check returns an error, and Schema returns the one statement that PostgreSQL and SQLite share.
type Dialect int

// The dialects, whose methods are for a transaction of that database.
const (
	// PostgreSQL is the Dialect whose Check is for transactions of PostgreSQL.
	PostgreSQL Dialect = iota + 1
	// MySQL is the Dialect whose Check is for transactions of MySQL and MariaDB. The table needs InnoDB, as Schema
	// makes it.
	MySQL
	// SQLite is the Dialect whose Check is for transactions of SQLite.
	SQLite
)

// String returns the name of the database: "PostgreSQL", "MySQL" or "SQLite".
func (d Dialect) String() string {
	switch d {
	case PostgreSQL:
		return "PostgreSQL"
	case MySQL:
		return "MySQL"
	case SQLite:
		return "SQLite"
	}
	return fmt.Sprintf("Dialect(%d)", int(d))
}

// Schema returns the SQL statement that creates the table relock_fences if it is missing, without a semicolon. It runs
// nothing itself: put it into your migrations. The table has a row for each resource: its name and its largest token.
// Rows are never removed. In MySQL a resource name has at most 512 bytes. An unknown Dialect, such as zero, gets the
// statement of PostgreSQL and SQLite.
func (d Dialect) Schema() string {
	if d == MySQL { // bytes: a collation would make one resource of two names
		return "CREATE TABLE IF NOT EXISTS relock_fences (resource VARBINARY(512) NOT NULL PRIMARY KEY, token BIGINT NOT NULL) ENGINE=InnoDB"
	}
	return "CREATE TABLE IF NOT EXISTS relock_fences (resource TEXT NOT NULL PRIMARY KEY, token BIGINT NOT NULL)"
}

// Check compares a token in the transaction tx. If the resource has seen a newer one, it returns an error that matches
// ErrStale. Else it remembers the token in the table of Schema and returns nil: an equal one passes. Roll the
// transaction back if Check returns an error. A token of zero or less is refused with another error. resource is any
// name for what is written: it need not be the lock's. tx must not be nil.
//
// Check must be the first statement of the transaction that writes. It locks the resource's row, so from there to the
// end of the transaction no other holder is between its own Check and its commit. If the transaction is rolled back,
// the token is forgotten. READ COMMITTED is enough. Above it, PostgreSQL may return a serialization error instead of
// ErrStale. A database may also end one of two transactions with an error of its own, such as a deadlock.
func (d Dialect) Check(ctx context.Context, tx *sql.Tx, resource string, token int64) error {
	if token <= 0 {
		return failed(resource, errNoToken)
	}
	largest, err := d.advance(ctx, tx, resource, token)
	switch {
	case err != nil:
		return failed(resource, err)
	case largest > token:
		return stale(resource, token, largest)
	}
	return nil
}

// advance stores the token unless a larger one is stored, and returns the largest. It locks the row in either case.
func (d Dialect) advance(ctx context.Context, tx *sql.Tx, resource string, token int64) (largest int64, err error) {
	switch d {
	case PostgreSQL, SQLite:
		done, err := tx.ExecContext(ctx, `INSERT INTO relock_fences (resource, token) VALUES ($1, $2)
			ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE relock_fences.token <= excluded.token`, resource, token)
		if err != nil {
			return 0, err
		}
		if n, err := done.RowsAffected(); err != nil || n > 0 {
			return token, err
		}
		err = tx.QueryRowContext(ctx, `SELECT token FROM relock_fences WHERE resource = $1`, resource).Scan(&largest)
		return largest, err
	case MySQL:
		_, err := tx.ExecContext(ctx, `INSERT INTO relock_fences (resource, token) VALUES (?, ?)
			ON DUPLICATE KEY UPDATE token = GREATEST(token, ?)`, resource, token, token)
		if err != nil {
			return 0, err
		}
		// A locking read: REPEATABLE READ would show the row as it was when the transaction began.
		err = tx.QueryRowContext(ctx, `SELECT token FROM relock_fences WHERE resource = ? FOR UPDATE`, resource).Scan(&largest)
		return largest, err
	}
	return 0, fmt.Errorf("unknown dialect %v: use PostgreSQL, MySQL or SQLite", d)
}
