//go:build unix

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// worldAt is a world on a server that there is.
func worldAt(t *testing.T, url string) *world { return &world{T: t, url: url} }

// doctor returns the findings by their check, and the exit status.
func (w *world) doctor(args ...string) (found map[string]finding, status int) {
	w.Helper()
	status, out, complaint := w.relock(append([]string{"doctor", "-json", "-watch", "0"}, args...)...)
	if complaint != "" {
		w.Errorf("complaint %q", complaint)
	}
	found = map[string]finding{}
	for line := range strings.Lines(out) {
		var f finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			w.Fatalf("%v: %q", err, line)
		}
		if was, twice := found[f.Check]; !twice || was.Result == fine {
			found[f.Check] = f
		}
	}
	return found, status
}

// wantWrong wants that one thing to be wrong, with these words, and the status to say so.
func (w *world) wantWrong(check, words string, args ...string) {
	w.Helper()
	found, status := w.doctor(args...)
	f := found[check]
	if status != exitFailed || f.Result != wrong || !strings.Contains(f.Found, words) || f.Advice == "" {
		w.Errorf("status %d, %+v, want %d, and %q to be wrong: %q", status, f, exitFailed, check, words)
	}
}

func TestDoctorFindsNothingWrongWithAServerThatIsSetUpWell(t *testing.T) {
	w := worldAt(t, "redis://"+redistest.Real(t, "--appendonly", "yes", "--maxmemory", "100mb", "--maxmemory-policy", "noeviction").Addr())
	found, status := w.doctor()
	for _, check := range []string{"version", "eviction", "persistence", "clock", "latency", "messages", "locks"} {
		if f := found[check]; f.Result != fine || f.Found == "" {
			t.Errorf("%s: %+v, want it to be ok", check, f)
		}
	}
	if status != 0 || len(found) != 7 {
		t.Errorf("status %d, found %v", status, found)
	}
	if status, out, _ := w.relock("doctor", "-watch", "0", "-q"); status != 0 || out != "" {
		t.Errorf("-q: status %d, %q, want nothing", status, out)
	}
}

func TestDoctorNamesAMissingPermission(t *testing.T) {
	srv := redistest.Real(t)
	admin := srv.Client(t)
	line := rig.DocumentedACL(t)
	w := worldAt(t, "redis://app:secret@"+srv.Addr())
	rig.Permit(t, admin, line)
	found, status := w.doctor()
	if status != 0 || found["locks"].Result != fine || found["eviction"].Result != unknown {
		t.Errorf("with the permissions of the page: status %d, %v, want nothing wrong, and that INFO is not allowed", status, found)
	}
	for _, command := range []string{"hset", "zadd", "publish"} {
		rig.Permit(t, admin, strings.Replace(line, " +"+command+" ", " ", 1))
		w.wantWrong("locks", command)
		rig.Permit(t, admin, line)
	}
	rig.Permit(t, admin, strings.Replace(line, "&relock:*", "&other:*", 1))
	w.wantWrong("messages", "cannot subscribe")
}

// Without the permission for CLUSTER MYID no lock can be taken. Fails when the doctor also says that locks do not need
// the command. Other commands that the user may not run are told as before.
func TestDoctorDoesNotCallACommandUnneededThatLocksNeed(t *testing.T) {
	srv := redistest.Real(t)
	rig.Permit(t, srv.Client(t), strings.Replace(rig.DocumentedACL(t), " +cluster|myid", "", 1))
	found, status := worldAt(t, "redis://app:secret@"+srv.Addr()).doctor()
	if status != exitFailed || !strings.Contains(found["locks"].Found, "cluster|myid") {
		t.Errorf("status %d, %+v; want that the permission for CLUSTER MYID is missing", status, found["locks"])
	}
	if told := found["commands"].Found; !strings.Contains(told, "INFO") || strings.Contains(told, "CLUSTER") {
		t.Errorf("commands that locks do not need: %q, want INFO and not CLUSTER", told)
	}
}

// The least permissions that the page lists have no PING, by which relock asked whether
// Redis is there: no command worked for such a user.
func TestUserOfThePageMayUseTheCommands(t *testing.T) {
	srv := redistest.Real(t)
	rig.Permit(t, srv.Client(t), rig.DocumentedACL(t))
	w := worldAt(t, "redis://app:secret@"+srv.Addr())
	if status, out, complaint := w.relock("run", "x", "--", "echo", "ran"); status != 0 || out != "ran\n" {
		t.Errorf("run: status %d, %q, %q", status, out, complaint)
	}
	if status, out, complaint := w.relock("info", "x"); status != 0 || out != "x is free\n0 waiting\n" {
		t.Errorf("info: status %d, %q, %q", status, out, complaint)
	}
}

func TestDoctorNamesAnEvictionPolicy(t *testing.T) {
	for _, policy := range []string{"allkeys-lru", "volatile-ttl"} {
		srv := redistest.Real(t, "--maxmemory", "100mb", "--maxmemory-policy", policy)
		worldAt(t, "redis://"+srv.Addr()).wantWrong("eviction", policy)
	}
	unset := redistest.Real(t, "--maxmemory-policy", "allkeys-lru")
	found, status := worldAt(t, "redis://"+unset.Addr()).doctor()
	if status != 0 || found["eviction"].Result != warning {
		t.Errorf("a policy that has no limit: status %d, %+v, want a warning", status, found["eviction"])
	}
}

func TestDoctorWarnsWhereNothingIsKept(t *testing.T) {
	for set, want := range map[string]string{"": "none", "900 1": "snapshots"} {
		srv := redistest.Real(t, "--save", set)
		found, status := worldAt(t, "redis://"+srv.Addr()).doctor()
		if f := found["persistence"]; status != 0 || f.Result != warning || !strings.Contains(f.Found, want) {
			t.Errorf("save %q: status %d, %+v, want a warning: %q", set, status, f, want)
		}
	}
}

func TestDoctorNamesAReplica(t *testing.T) {
	r := redistest.StartReplication(t, 1)
	worldAt(t, "redis://"+r.Replicas[0].Addr()).wantWrong("version", "replica")
}

// A server of before 7.0 is one of out/servers: "make servers" fetches it.
func TestDoctorNamesAServerThatIsTooOld(t *testing.T) {
	dir, err := filepath.Abs("../../out/servers/redis-6.2.5")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "redis-server")); err != nil {
		t.Skip("left out: there is no Redis 6.2.5; make servers fetches it")
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	w := worldAt(t, "redis://"+redistest.Real(t).Addr())
	w.wantWrong("version", "redis 6.2.5")
	w.wantWrong("locks", "Redis 7.0 or Valkey is needed, this is 6.2.5")
}

// stepping is a server whose clock the test moves.
func stepping(t *testing.T) (srv *redistest.RealServer, move func(time.Duration)) {
	t.Helper()
	dir := t.TempDir()
	offset := shim(t, dir)
	srv = redistest.Real(t)
	for _, name := range []string{"LD_PRELOAD", "TORTURE_CLOCK"} {
		_ = os.Unsetenv(name) // t.Setenv puts back what there was
	}
	return srv, func(by time.Duration) { offset(by) }
}

func TestDoctorNamesAClockThatSteps(t *testing.T) {
	if redistest.Lacks("preload") {
		t.Skip("left out: this server is linked statically, so its clock cannot be moved")
	}
	for _, by := range []time.Duration{5 * time.Second, -3 * time.Second} {
		srv, move := stepping(t)
		w := worldAt(t, "redis://"+srv.Addr())
		moved := make(chan struct{})
		go func() {
			defer close(moved)
			for srv.CommandStats(t.Context())["time"] < 10 && t.Context().Err() == nil { // it is being watched
			}
			move(by)
		}()
		found, status := w.doctor("-watch", "2")
		<-moved
		f := found["clock"]
		if status != exitFailed || f.Result != wrong || !strings.Contains(f.Found, "the clock stepped by ") {
			t.Errorf("a step of %v: status %d, %+v", by, status, f)
		}
		move(0)
	}
}

func TestClockThatIsSlewedStepsNot(t *testing.T) {
	var all []reading
	began := time.Now()
	for i := range 100 {
		asked := began.Add(time.Duration(i) * readEvery)
		there := began.Add(time.Hour + time.Duration(float64(i)*1.005*float64(readEvery)))
		all = append(all, reading{asked, asked.Add(time.Millisecond), there})
	}
	if step, at := stepOf(all); step != 0 {
		t.Errorf("a step of %v after %v in a clock that runs by 0.5 %% too fast", step, at)
	}
	all[50].there = all[50].there.Add(-100 * time.Millisecond)
	if step, at := stepOf(all); step > -50*time.Millisecond || step < -110*time.Millisecond || at != 50*readEvery {
		t.Errorf("a step of %v after %v, want one of -0.1 s after %v", step, at, 50*readEvery)
	}
}

// A TTL that is too short for the way to Redis fails locks in ways that look like an outage.
func TestDoctorNamesTheTTLThatTheWayToRedisNeeds(t *testing.T) {
	begin := time.Now()
	for _, c := range []struct {
		trip         time.Duration
		want, advice string
	}{
		{5 * time.Millisecond, fine, ""},
		{20 * time.Millisecond, fine, ""},
		{21 * time.Millisecond, warning, "a TTL below 126ms"},
		{200 * time.Millisecond, warning, "a TTL below 1.2s"},
	} {
		d := &doctor{}
		(&checkup{doctor: d}).latency([]reading{{asked: begin, answered: begin.Add(c.trip)}})
		if f := d.found[0]; f.Result != c.want || !strings.Contains(f.Advice, c.advice) {
			t.Errorf("round trip of %v: %+v, want %s and %q", c.trip, f, c.want, c.advice)
		}
	}
}

// Fails when the help says less than is true.
func TestWhatTheDoctorLeavesIsGoneWhenItsHelpSays(t *testing.T) {
	w, srv := newWorldOf(t)
	w.relock("doctor", "-watch", "0")
	for _, key := range srv.Keys() {
		most := time.Minute + doctorTTL
		if strings.HasPrefix(key, "relock:label:") {
			most = 15 * time.Minute
		}
		if left := srv.TTL(key); left <= 0 || left > most {
			t.Errorf("%s is there for another %v, want %v at most", key, left, most)
		}
	}
}
