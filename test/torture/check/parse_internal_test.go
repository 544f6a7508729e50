package check

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock/test/torture/history"
)

// FuzzLine: whatever a line is, it is read as encoding/json reads it, or refused with it.
func FuzzLine(f *testing.F) {
	for _, line := range []string{
		`{"t":1,"w":-1,"e":"fault","x":"cut","on":"link 2","u":5,"by":-3}`,
		`{"t":9223372036854775807,"w":2,"e":"call","i":1,"l":"one/x","k":"fair rw","m":"r","o":"a","ttl":1000}`,
		`{"t":1,"w":2,"e":"acquired","i":1,"f":1800000000000000}`,
		`{"t":01}`, `{"t":-}`, `{"t":1`, `{"t":1.5}`, `{"t":"1"}`, `{"l":"\u0041\n"}`, `{"l":"é"}`, `{"T":7}`, ` { "t" : 1 } `, `{}`, `{"t":1}x`,
		`{"q":[1,{"t":2}]}`, `null`, `[]`, `{"t":1,}`, `{"t":-0}`, `{"w":99999999999999999999}`, "{\"l\":\"\x00\"}", `{"e":1}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var got, want history.Event
		err := newParser().line(line, &got)
		if wantErr := json.Unmarshal(line, &want); (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: error %v, encoding/json has %v", line, err, wantErr)
		}
		if err == nil && got != want {
			t.Fatalf("%q: %+v, encoding/json has %+v", line, got, want)
		}
	})
}

// FuzzHistory: no file makes the checker fail, whatever it claims.
func FuzzHistory(f *testing.F) {
	var b strings.Builder
	for _, e := range simulate(3, "fair rw", true, true, 12).events {
		line, _ := json.Marshal(e)
		b.Write(append(line, '\n'))
	}
	f.Add([]byte(b.String()))
	f.Add([]byte("{\"t\":1,\"e\":\"acquired\"}\nrubbish\n\n{\"t\":2,\"e\":\"call\",\"i\":1}\n{\"t\":2,\"e\":\"rel"))
	f.Fuzz(func(t *testing.T, file []byte) {
		in, p := newInput(), newParser()
		if _, err := lines(strings.NewReader(string(file)), func(line []byte) { in.read(p, "x", line) }); err != nil {
			t.Fatal(err)
		}
		in.close()
		judge(in, Options{})
	})
}

func write(t *testing.T, dir, name string, x *tale, more string) {
	t.Helper()
	var b strings.Builder
	for _, e := range x.events {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(b.String()+more), 0o600); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, dir string) Report {
	t.Helper()
	report, err := Run(dir, Options{Minimums: &Minimums{}})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestViolationIsWrittenOutWithItsSeedAndTheEventsAroundIt(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "rig.jsonl", plain().add(-3600_000+1, history.Event{Worker: -1, What: history.Start, By: 4711, Until: start + 60_000*ms}).
		fault(12, 13, history.Slow, "link 2"), "")
	write(t, dir, "worker-1.jsonl", plain().brief(1, 1, 10).brief(1, 7, 10_000), "")
	write(t, dir, "worker-2.jsonl", plain().brief(2, 2, 15), "")
	report := run(t, dir)
	if report.OK() || len(report.Violations) == 0 || report.Seed != 4711 || report.Duration < time.Minute {
		t.Fatalf("the report says:\n%s", report.Markdown())
	}
	for _, v := range report.Violations {
		text, err := os.ReadFile(v.File)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{string(v.Name), "seed 4711", `"f":1000,`, `"f":2000,`, `"x":"slow"`} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s does not have %q:\n%s", v.File, want, text)
			}
		}
		if strings.Contains(string(text), `"f":7,`) {
			t.Errorf("%s has events of seconds later", v.File)
		}
	}
	if md := report.Markdown(); !strings.Contains(md, "FAILED") || !strings.Contains(md, "lease overlap: ") {
		t.Errorf("the table says:\n%s", md)
	}
	if _, err := json.Marshal(report); err != nil {
		t.Error(err)
	}
}

func TestLastLineOfAKilledProcessMayBeTorn(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.jsonl", plain().brief(1, 1, 10), `{"t":36000000`)
	if report := run(t, dir); !report.OK() || report.Torn != 1 || report.Total() != 1 {
		t.Errorf("the report says:\n%s", report.Markdown())
	}
	write(t, dir, "a.jsonl", plain().brief(1, 1, 10), "{\"t\":36000000\n")
	if report := run(t, dir); report.Counts[Malformed] != 1 {
		t.Errorf("a line that is no event passes:\n%s", report.Markdown())
	}
	write(t, dir, "a.jsonl", plain().brief(1, 1, 10), strings.Repeat("x", 3*maxLine)+"\n")
	if report := run(t, dir); report.Counts[Malformed] != 1 {
		t.Errorf("a line that is too long passes:\n%s", report.Markdown())
	}
}

func TestRunWithoutEventsIsAnError(t *testing.T) {
	if _, err := Run(t.TempDir(), Options{}); err == nil {
		t.Error("an empty directory passes")
	}
}

func BenchmarkLine(b *testing.B) {
	line := []byte(`{"t":3600123456789,"w":12,"e":"acquired","i":123456,"l":"sentinel/fair rw-3","f":1800000000000000,"u":3600123456789}`)
	p := newParser()
	var e history.Event
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if err := p.line(line, &e); err != nil {
			b.Fatal(err)
		}
	}
}
