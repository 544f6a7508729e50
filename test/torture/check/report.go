package check

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Name is the name of a violation.
type Name string

// What a run can violate.
const (
	LeaseOverlap  Name = "lease overlap"        // valid holds that exclude each other, or of more permits than there are, and no fault for which that may be
	StaleEffect   Name = "stale effect"         // the store took a write with a token smaller than one before
	FreshRefused  Name = "fresh effect refused" // the store refused a token though it had seen none that is larger
	HolderRefused Name = "holder refused"       // a valid holder's token was too small
	TokenRepeated Name = "token repeated"       // two grants have one token
	TokenFell     Name = "token fell"           // a later grant has a smaller token
	ReentryToken  Name = "re-entry token"       // a re-entry did not share the token of the grant
	Overtaken     Name = "overtaken"            // a fair lock was granted out of the order of arrival
	LostWakeup    Name = "lost wake-up"         // a call waited for a lock that nobody held
	LostSignal    Name = "lost signal"          // a signal woke nobody, though somebody waited on its condition
	BufferBroken  Name = "buffer broken"        // an item was taken twice or by nobody, or put where there was no room
	TicketBroken  Name = "ticket broken"        // a ticket was resumed twice, or under another token
	TickTwice     Name = "tick twice"           // Once ran twice in an interval
	TickMissed    Name = "tick missed"          // Once said that an interval was spent in which nothing ran
	Circle        Name = "circle"               // calls for several locks together waited for each other
	KeptForNobody Name = "kept for nobody"      // redis kept a lock of which no call had a hold
	ReturnedLost  Name = "returned lost"        // a call returned a hold that had been lost before
	SlowScript    Name = "slow script"          // a script kept a server from its other clients
	SlowServer    Name = "slow server"          // another client's pings were late
	Leaked        Name = "leak"                 // a key, goroutine or connection was left
	NoOrder       Name = "no legal order"       // porcupine: the calls have no order that the model allows
	Undecided     Name = "undecided"            // porcupine ran out of time
	Malformed     Name = "malformed history"    // the history cannot be believed
	TooLittle     Name = "too little happened"  // the run shows nothing
)

// A Violation is something that must not be.
type Violation struct {
	Name   Name   `json:"name"`
	Lock   string `json:"lock,omitempty"`
	From   int64  `json:"from,omitempty"` // on the history's clock, ns
	To     int64  `json:"to,omitempty"`
	Detail string `json:"detail"`
	Seed   int64  `json:"seed"`
	File   string `json:"file,omitempty"` // the events around it
}

func (v Violation) String() string {
	text := fmt.Sprintf("%s: %s", v.Name, v.Detail)
	if v.Lock != "" {
		text += fmt.Sprintf(" [lock %s, t %d to %d]", v.Lock, v.From, v.To)
	}
	if v.File != "" {
		text += ": " + v.File
	}
	return text
}

// kept is how many violations of one name are described; all are counted.
const kept = 100

// A Report is what a run showed.
type Report struct {
	Seed     int64         `json:"seed"`
	Duration time.Duration `json:"duration"`
	Files    int           `json:"files"`
	Torn     int           `json:"torn"` // files whose last line was cut short
	Events   int           `json:"events"`
	Locks    int           `json:"locks"`

	Calls     int            `json:"calls"`
	Grants    map[string]int `json:"grants"` // by kind and mode
	Reentries int            `json:"reentries"`
	Cancelled int            `json:"cancelled"`
	Failed    map[string]int `json:"failed"` // by other reasons
	Ambiguous int            `json:"ambiguous"`
	Losses    int            `json:"losses"`

	Forms map[string]*Form `json:"forms"` // of deployments

	Stalls         int            `json:"stalls"` // of a loaded machine
	Faults         map[string]int `json:"faults"`
	Overlaps       map[string]int `json:"overlaps"` // lease overlaps, by the fault they are attributed to
	LongestOverlap time.Duration  `json:"longestOverlap"`
	TokensFell     int            `json:"tokensFell"` // where limits.md allows it
	Unwaited       int            `json:"unwaited"`   // waits on conditions that a failover has lost
	PassedOn       int            `json:"passedOn"`   // holds passed on in a process that had lost the lock

	Effects int `json:"effects"`
	Stale   int `json:"stale"` // of these refused, rightly

	Orders      int           `json:"orders"` // calls of fair locks whose turn was checked
	Waits       int           `json:"waits"`  // calls that waited for a free lock for some time
	Probes      int           `json:"probes"`
	Awaits      int           `json:"awaits"`  // waits on conditions
	Signals     int           `json:"signals"` // for which somebody certainly waited
	Items       int           `json:"items"`   // taken from buffers
	Tickets     int           `json:"tickets"`
	Resumed     int           `json:"resumed"`    // of these
	Together    int           `json:"together"`   // holds that were taken with others
	LongestAll  time.Duration `json:"longestAll"` // wait for such, faults apart
	Ticks       int           `json:"ticks"`      // runs of Once
	Spent       int           `json:"spent"`      // calls of Once that found their interval spent
	LongestWake time.Duration `json:"longestWake"`

	Kept              int           `json:"kept"` // times for which a lock had one holder for long
	LongestScript     time.Duration `json:"longestScript"`
	LongestScriptName string        `json:"longestScriptName"`
	LongScripts       int           `json:"longScripts"`  // of more than 10 ms
	Pings             int64         `json:"pings"`        // of another client
	SlowestPings      time.Duration `json:"slowestPings"` // the 99th of a hundred; 0: less than 5 ms
	ControlPings      time.Duration `json:"controlPings"` // the same of a server that nobody uses

	Operations  int `json:"operations"` // checked with porcupine
	Segments    int `json:"segments"`
	NotModelled int `json:"notModelled"` // locks whose tokens fell, or that hundreds of calls want at a time
	LeftOut     int `json:"leftOut"`     // holds that have no one order with others, by a fault
	Permits     int `json:"permits"`     // grants of semaphores that were put into an order

	Swept map[string]int `json:"swept"` // inspections after the end, by what they counted

	Violations []Violation  `json:"violations"`
	Counts     map[Name]int `json:"counts"` // of violations
}

func newReport(in *input) Report {
	r := Report{
		Seed: in.seed, Files: in.files, Torn: in.torn, Events: in.events,
		Grants: map[string]int{}, Failed: map[string]int{}, Faults: map[string]int{}, Overlaps: map[string]int{},
		Swept: map[string]int{}, Counts: map[Name]int{}, Forms: map[string]*Form{},
	}
	if in.begun < in.until {
		r.Duration = time.Duration(in.until - in.begun)
	}
	if in.planned > 0 {
		r.Duration = in.planned
	}
	for _, f := range in.faults {
		r.fault(f)
	}
	return r
}

func (k *checker) violation(s *story, name Name, from, to int64, format string, args ...any) {
	r := &k.report
	r.Counts[name]++
	if r.Counts[name] <= kept {
		r.Violations = append(r.Violations, Violation{
			Name: name, Lock: s.name, From: from, To: to, Detail: fmt.Sprintf(format, args...), Seed: r.Seed,
		})
	}
}

// OK says that nothing was violated, in a run in which enough happened.
func (r *Report) OK() bool { return len(r.Counts) == 0 }

func (r *Report) finish() {
	slices.SortStableFunc(r.Violations, func(a, b Violation) int { return strings.Compare(string(a.Name), string(b.Name)) })
}

// Total is the number of grants.
func (r *Report) Total() int { return sum(r.Grants) }

func sum(m map[string]int) (n int) {
	for _, v := range m {
		n += v
	}
	return n
}
