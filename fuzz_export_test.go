package relock

import "time"

// A FuzzedMessage is what parseMessage makes of a payload.
type FuzzedMessage struct {
	Verb, Nonce   string
	Op, Low, High int64
}

func ParseMessage(payload string) (FuzzedMessage, error) {
	m, err := parseMessage(payload)
	return FuzzedMessage{m.verb, m.nonce, m.op, m.low, m.high}, err
}

// A FuzzedAnswer is one answer of the acquire script, or what hold says.
type FuzzedAnswer struct {
	Code, Low, High, Ticket int64
	Remaining, Wait         time.Duration
}

func DecodeAcquire(raw []any, requests int) (now int64, answers []FuzzedAnswer, err error) {
	reply, err := decodeAcquire(raw, requests)
	for _, a := range reply.answers {
		answers = append(answers, FuzzedAnswer{a.code, a.low, a.high, a.ticket, a.remaining, a.wait})
	}
	return reply.now, answers, err
}

func DecodeHold(raw []any) (held bool, now int64, a FuzzedAnswer, err error) {
	reply, err := decodeHold(raw)
	return reply.held, reply.now, FuzzedAnswer{Low: reply.low, High: reply.high, Remaining: reply.remaining}, err
}

func DecodeRelease(raw []any) (was, now int64, more bool, err error) { return decodeRelease(raw) }

func DecodeInfo(raw []any) (Info, error) {
	info, _, err := decodeInfo(raw)
	return info, err
}
func DecodeWaiters(raw []any) (page []Waiter, last int64, err error) { return decodeWaiters(raw) }

// Asked is what l asks of Redis, or why every call on it fails.
func (l *Lock) Asked() (owner string, ttl, maxHold time.Duration, err error) {
	return l.terms.owner, l.terms.ttl, l.terms.maxHold, l.err
}

// Timeouts are the client's own.
func (c *Client) Timeouts() (release, keep time.Duration) {
	return c.cfg.releaseTimeout, c.cfg.tokenKeep
}
