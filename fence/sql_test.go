package fence_test

import (
	"strings"
	"testing"

	"github.com/relock-go/relock/fence"
)

func TestADialectIsCalledAsItsDatabase(t *testing.T) {
	for d, want := range map[fence.Dialect]string{
		fence.PostgreSQL: "PostgreSQL", fence.MySQL: "MySQL", fence.SQLite: "SQLite",
	} {
		if got := d.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Whoever puts several statements together adds the semicolons.
func TestSchemaIsOneStatementWithoutASemicolon(t *testing.T) {
	for _, d := range []fence.Dialect{fence.PostgreSQL, fence.MySQL, fence.SQLite, 0} {
		if schema := d.Schema(); !strings.HasPrefix(schema, "CREATE TABLE ") || strings.Contains(schema, ";") {
			t.Errorf("the schema of %v is %q", d, schema)
		}
	}
}
