package fence_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/relock-go/relock/fence"
	"github.com/relock-go/relock/internal/spawn"
)

// requireEnv, set to 1, turns the lack of a database into a failure.
const requireEnv = "RELOCK_TEST_REQUIRE"

// startWithin bounds the wait for the first answer of a database.
const startWithin = time.Minute

// A database is one that is started for a test, with the table of tokens.
type database struct {
	fence.Dialect
	*sql.DB
}

var databases = map[string]func(t *testing.T) database{
	"PostgreSQL": func(t *testing.T) database { return database{fence.PostgreSQL, postgres(t)} },
	"MariaDB":    func(t *testing.T) database { return database{fence.MySQL, mariadb(t)} },
	"SQLite":     func(t *testing.T) database { return database{fence.SQLite, sqlite(t)} },
}

// onEach runs f on each database.
func onEach(t *testing.T, f func(t *testing.T, db database)) {
	t.Parallel()
	for name, start := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := start(t)
			for range 2 { // it may stand in migrations that run again
				must(t, statement(t, db, db.Schema()))
			}
			f(t, db)
		})
	}
}

func sqlite(t *testing.T) *sql.DB {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "test.db")+"?_txlock=immediate&_pragma=busy_timeout(60000)")
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func postgres(t *testing.T) *sql.DB {
	bin := find(t, "postgres", "/usr/lib/postgresql/*/bin/postgres")
	h := newHome(t)
	h.run(filepath.Join(filepath.Dir(bin), "initdb"), "-D", h.data, "-U", "relock", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	h.start(bin, "-D", h.data, "-h", "127.0.0.1", "-p", h.port, "-k", "", "-c", "fsync=off")
	return h.open("pgx", "postgres://relock@127.0.0.1:"+h.port+"/postgres")
}

func mariadb(t *testing.T) *sql.DB {
	bin := find(t, "mariadbd", "/usr/sbin/mariadbd")
	h := newHome(t)
	h.run("mkdir", "-p", h.data+"/test") // a folder is a database; without grants it needs no table of its own
	h.start(bin, "--no-defaults", "--datadir="+h.data, "--bind-address=127.0.0.1", "--port="+h.port, "--socket="+h.data+"/s", "--skip-name-resolve",
		"--skip-grant-tables", "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=16M")
	return h.open("mysql", "root@tcp(127.0.0.1:"+h.port+")/test")
}

// find returns the path of a program. Without it, the test is skipped, or fails if RELOCK_TEST_REQUIRE is 1.
func find(t *testing.T, name, pattern string) string {
	t.Helper()
	if bin, err := exec.LookPath(name); err == nil {
		bin, err = filepath.EvalSymlinks(bin)
		must(t, err)
		return bin
	}
	if all, _ := filepath.Glob(pattern); len(all) > 0 {
		return all[len(all)-1]
	}
	if os.Getenv(requireEnv) == "1" {
		t.Fatalf("%s is not installed, and %s=1 demands it: run `make deps`, which installs it", name, requireEnv)
	}
	t.Skipf("left out: this test needs %s; `make deps` installs it", name)
	return ""
}

// A home is the folder, the port and the user of a server. Databases refuse to run as root.
type home struct {
	t          *testing.T
	data, port string
	as         []string // what a command line begins with
}

func newHome(t *testing.T) *home {
	t.Helper()
	dir, err := os.MkdirTemp("", "relock-fence-") //nolint:usetesting // another user cannot enter t.TempDir
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h := &home{t: t, data: filepath.Join(dir, "data")}
	if os.Getuid() == 0 {
		nobody, err := user.Lookup("nobody")
		must(t, err)
		uid, _ := strconv.Atoi(nobody.Uid)
		gid, _ := strconv.Atoi(nobody.Gid)
		must(t, os.Chown(dir, uid, gid))
		h.as = []string{"setpriv", "--reuid", nobody.Uid, "--regid", nobody.Gid, "--clear-groups", "--pdeathsig", "KILL"}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	_, h.port, _ = net.SplitHostPort(l.Addr().String())
	must(t, l.Close())
	return h
}

func (h *home) command(line ...string) *exec.Cmd {
	line = append(slices.Clip(h.as), line...)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir = filepath.Dir(h.data)
	return cmd
}

func (h *home) run(line ...string) {
	h.t.Helper()
	if out, err := h.command(line...).CombinedOutput(); err != nil {
		h.t.Fatalf("%s: %v\n%s", line[0], err, out)
	}
}

// start starts a server that ends with the test.
func (h *home) start(line ...string) {
	h.t.Helper()
	var out bytes.Buffer
	cmd := h.command(line...)
	cmd.Stdout, cmd.Stderr = &out, &out
	exited, err := spawn.Start(cmd)
	must(h.t, err)
	h.t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // PostgreSQL: end now, and end the children
		late := time.NewTimer(10 * time.Second)
		defer late.Stop()
		select {
		case <-exited:
		case <-late.C:
			_ = cmd.Process.Kill()
			<-exited
		}
		if h.t.Failed() {
			h.t.Logf("%s said:\n%s", line[0], out.Bytes())
		}
	})
}

// open returns a connection to the server once that answers.
func (h *home) open(driver, source string) *sql.DB {
	h.t.Helper()
	db, err := sql.Open(driver, source)
	must(h.t, err)
	h.t.Cleanup(func() { _ = db.Close() })
	ctx, cancel := context.WithTimeout(h.t.Context(), startWithin)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		if err = db.PingContext(ctx); err == nil {
			return db
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			h.t.Fatal(fmt.Errorf("the database does not answer: %w", err))
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func statement(t *testing.T, db database, query string, args ...any) error {
	_, err := db.ExecContext(t.Context(), query, args...)
	return err
}
