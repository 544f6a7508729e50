package wire

import (
	"fmt"
	"strconv"
	"strings"
)

// A Sight says whether a script sees that a client is subscribed to its inbox.
type Sight int32

// The sights.
const (
	Unknown Sight = iota // not heard yet, or an echo that does not say
	Seen
	Unseen
)

var sights = map[string]Sight{"seen": Seen, "unseen": Unseen}

// A Message is what a script publishes to this client's inbox.
type Message struct {
	Verb      string   // grant, look, lost, ended, wanted or echo
	Nonce     string   // the acquisition that it is about; echo: ""
	Op        int64    // grant: the request from which the lease counts
	Low, High int64    // grant: the tokens
	Wanted    bool     // grant: others than those of the run wait for it to end
	Run       []string // grant: nonces of the same client that are next in the queue, in order
	Sight     Sight    // echo
}

// ParseMessage reads a message. It refuses what scripts do not write, but does not check the nonces of a grant's run.
func ParseMessage(payload string) (m Message, err error) {
	var fields bool
	m.Verb, payload, fields = strings.Cut(payload, " ")
	switch m.Verb {
	case "echo":
		var known bool
		if m.Sight, known = sights[payload]; fields != known {
			err = fmt.Errorf("message echo has the word %.20q", payload)
		}
		return m, err
	case "look", "lost", "ended", "wanted":
		m.Nonce = payload
		if len(payload) != nonceLen {
			err = fmt.Errorf("message %q has a nonce of %d bytes", m.Verb, len(payload))
		}
		return m, err
	case "grant":
		return parseGrant(payload)
	}
	return m, fmt.Errorf("message of unknown verb %.20q", m.Verb)
}

// parseGrant reads the fields of a grant. It refuses numbers in a form that scripts do not write: with a sign or
// leading zeros. It does not check the nonces of a run: a text that is no nonce names no acquisition.
func parseGrant(payload string) (Message, error) {
	fields := strings.Split(payload, " ")
	if len(fields) < 4 || len(fields[0]) != nonceLen {
		return Message{}, fmt.Errorf("message grant has %d fields, want a nonce and 3 numbers", len(fields))
	}
	run := fields[4:]
	wanted := len(run) > 0 && run[0] == isWanted
	if wanted {
		run = run[1:]
	}
	var numbers [3]int64
	for i, field := range fields[1:4] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil || n < 1 || n > maxCount || strconv.FormatInt(n, 10) != field {
			return Message{}, fmt.Errorf("message grant has the number %.20q", field)
		}
		numbers[i] = n
	}
	if numbers[1] > numbers[2] {
		return Message{}, fmt.Errorf("message grant has tokens from %d to %d", numbers[1], numbers[2])
	}
	return Message{Verb: "grant", Nonce: fields[0], Op: numbers[0], Low: numbers[1], High: numbers[2], Wanted: wanted, Run: run}, nil
}
