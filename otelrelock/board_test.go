package otelrelock_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.yaml.in/yaml/v3"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// prometheus are the metrics as Prometheus names them: dots become underscores, the unit is
// a suffix, and so is what each sort of metric has.
func prometheus(metrics map[string]metricdata.Metrics) (names map[string]bool, labels map[string]bool) {
	names, labels = map[string]bool{}, map[string]bool{"le": true}
	for _, m := range metrics {
		name := strings.ReplaceAll(m.Name, ".", "_")
		if m.Unit == "s" {
			name += "_seconds"
		}
		switch data := m.Data.(type) {
		case metricdata.Histogram[float64]:
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				names[name+suffix] = true
			}
			for _, p := range data.DataPoints {
				for _, kv := range p.Attributes.ToSlice() {
					labels[strings.ReplaceAll(string(kv.Key), ".", "_")] = true
				}
			}
		case metricdata.Sum[int64]:
			if data.IsMonotonic {
				name += "_total"
			}
			names[name] = true
			for _, p := range data.DataPoints {
				for _, kv := range p.Attributes.ToSlice() {
					labels[strings.ReplaceAll(string(kv.Key), ".", "_")] = true
				}
			}
		}
	}
	return names, labels
}

// everything has each metric told at least once, as Prometheus names them.
func everything(t *testing.T) (names, labels map[string]bool) {
	t.Helper()
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		s := watch(t)
		c, link := x.Linked(s.hooks)
		l, other := c.NewLock("a"), x.Lock("b")
		rig.Must(t, l.Lock(t.Context()))
		rig.Must(t, other.Lock(t.Context()))
		_, err := c.NewLock("b").TryLock(t.Context(), time.Second)
		rig.Must(t, err)
		virtual.Sleep(11 * time.Second)
		link.Hole()
		virtual.Sleep(time.Minute)
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		names, labels = prometheus(s.metrics())
	})
	return names, labels
}

var (
	ofRelock    = regexp.MustCompile(`\b(relock_\w+|error_type)\b`)
	ofHistogram = regexp.MustCompile(`(_seconds)_(bucket|sum|count)$`)
	grouped     = regexp.MustCompile(`by \(([^)]*)\)`)
)

// checkQueries fails unless each metric and label that the queries name is told, and each
// metric that is told is named, if all have to be.
func checkQueries(t *testing.T, queries []string, all bool) {
	t.Helper()
	names, labels := everything(t)
	used := map[string]bool{}
	for _, q := range queries {
		for _, word := range ofRelock.FindAllString(q, -1) {
			used[word] = true
			if !names[word] && !labels[word] {
				t.Errorf("%q: nothing tells %s", q, word)
			}
		}
		for _, by := range grouped.FindAllStringSubmatch(q, -1) {
			for label := range strings.SplitSeq(by[1], ",") {
				if !labels[strings.TrimSpace(label)] {
					t.Errorf("%q: no metric has the label %s", q, label)
				}
			}
		}
		if strings.Count(q, "(") != strings.Count(q, ")") || strings.Count(q, "{") != strings.Count(q, "}") {
			t.Errorf("%q: a bracket is missing", q)
		}
	}
	shown := map[string]bool{}
	for name := range names {
		metric := ofHistogram.ReplaceAllString(name, "$1")
		shown[metric] = shown[metric] || used[name]
	}
	for metric, is := range shown {
		if all && !is {
			t.Errorf("no panel shows %s", metric)
		}
	}
	if len(names) != 11 || len(used) < 5 {
		t.Errorf("%d metrics are told, want 11 as Prometheus counts; %d words are used", len(names), len(used))
	}
}

func TestBoardShowsWhatIsTold(t *testing.T) {
	text, err := os.ReadFile("grafana.json")
	rig.Must(t, err)
	var board struct {
		Title, UID string
		Panels     []struct {
			ID          int
			Title, Type string
			Targets     []struct{ Expr, RefID string }
			GridPos     struct{ H, W, X, Y int }
		}
		Templating struct {
			List []struct{ Name, Query string }
		}
	}
	rig.Must(t, json.Unmarshal(text, &board))
	var queries []string
	ids := map[int]bool{}
	for _, p := range board.Panels {
		if ids[p.ID] || p.Title == "" || p.Type == "" || len(p.Targets) == 0 || p.GridPos.W == 0 {
			t.Errorf("panel %+v: no title, type, place or query, or an ID that another has", p)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			queries = append(queries, target.Expr)
		}
	}
	variables := map[string]bool{}
	for _, v := range board.Templating.List {
		variables[v.Name] = true
		if v.Name == "lock" {
			queries = append(queries, v.Query)
		}
	}
	if board.Title != "relock" || board.UID == "" || !variables["datasource"] || !variables["lock"] {
		t.Errorf("board %q %q with the variables %v", board.Title, board.UID, variables)
	}
	checkQueries(t, queries, true)
}

func TestAlertsAreOfWhatIsTold(t *testing.T) {
	text, err := os.ReadFile("alerts.yml")
	rig.Must(t, err)
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	rig.Must(t, yaml.Unmarshal(text, &file))
	var queries []string
	for _, group := range file.Groups {
		for _, r := range group.Rules {
			if r.Alert == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("rule %+v lacks a name, a severity, or what it says", r)
			}
			if _, err := time.ParseDuration(r.For); r.For != "" && err != nil {
				t.Errorf("%s: %v", r.Alert, err)
			}
			queries = append(queries, r.Expr)
		}
	}
	if len(queries) < 3 {
		t.Errorf("%d rules, want three and more", len(queries))
	}
	checkQueries(t, queries, false)
}

// Fails when an alert does not fire as testdata/alerts.yml says: the first loss of all among them.
func TestAlertsFireAsPrometheusReadsThem(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("left out: there is no promtool")
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "test", "rules", "testdata/alerts.yml").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// Fails when the alert of losses goes by increase() alone, which is 0 for a series that begins at 1.
func TestAlertOfLossesHeedsASeriesThatIsNew(t *testing.T) {
	text, err := os.ReadFile("alerts.yml")
	rig.Must(t, err)
	if !strings.Contains(string(text), "unless last_over_time(relock_lock_lost_total[1h] offset 5m) == relock_lock_lost_total) > 0") {
		t.Error("a series that begins with a loss is no alert")
	}
}
