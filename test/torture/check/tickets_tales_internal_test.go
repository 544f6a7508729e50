package check

import "github.com/relock-go/relock/test/torture/history"

// handedOver is a hold of token 1 that is detached at 10, into ticket 50, for 500 ms.
func handedOver(resumed ...held) *tale {
	x := plain().hold(held{w: 1, token: 1, owner: "~1", call: 1, got: 2, releasing: 10, released: 11}).
		hold(held{w: history.Nobody, id: 50, token: 1, owner: "~1", call: 10, got: 11, until: 510})
	for _, h := range resumed {
		h.owner, h.resumes = "~1", 50
		x.hold(h)
	}
	return x
}

// next is a hold that resumes the ticket from an instant on.
func next(id, at int64) held {
	return held{w: 2, id: id, token: 1, call: at, got: at + 1, releasing: at + 50, released: at + 51}
}

// handedBeside is a hold that is handed over after another was let in with a much larger token.
func handedBeside() *tale { return handedOver().brief(3, 20_001, 5) }

var ticketTales = []judged{
	{"a ticket of a hold beside which another primary let one in", "", handedBeside().fault(3, 400, history.Failover, "one")},
	{"the same without another primary", LeaseOverlap, handedBeside()},
	{"a hold that is handed over", "", handedOver(next(2, 100)).brief(3, 3, 160)},
	{"another holds between detaching and resuming", LeaseOverlap, handedOver(next(2, 100)).brief(3, 3, 50)},
	{"another holds between, in no order", NoOrder, handedOver(next(2, 100)).brief(3, 3, 50)},
	{
		"another holds while a ticket is resumed", NoOrder,
		handedOver(held{w: 2, id: 2, token: 1, call: 100, got: 130, releasing: 150, released: 151}).brief(3, 3, 110),
	},
	{"a ticket that is resumed twice", TicketBroken, handedOver(next(2, 100), next(3, 120)).brief(3, 3, 180)},
	{
		"a ticket that is resumed twice, as a failover has lost that", "",
		handedOver(next(2, 100), next(3, 120)).fault(103, 110, history.Failover, "one").brief(3, 3, 180),
	},
	{
		"a ticket that is resumed by one of two", "",
		handedOver(next(2, 100), held{w: 3, id: 30, call: 101, failed: 102, why: "lost"}).brief(3, 3, 180),
	},
	{
		"a ticket that is resumed under another token", TicketBroken,
		handedOver(held{w: 2, id: 2, token: 2, call: 100, got: 101, releasing: 150, released: 151}),
	},
	{"another holds when a ticket's time is over", "", handedOver().hold(held{w: 3, token: 3, call: 20, got: 520, releasing: 530, released: 531})},
	{"another holds before a ticket's time is over", LeaseOverlap, handedOver().hold(held{w: 3, token: 3, call: 20, got: 500, releasing: 530, released: 531})},
	{"another waits long after a ticket's time is over", LostWakeup, handedOver().hold(held{w: 3, token: 3, call: 20, got: 4000, releasing: 4001, released: 4002})},
	{
		"another holds before the time of a ticket is over whose process is gone", LeaseOverlap,
		handedOver().add(100, history.Event{What: history.Died, Worker: 1}).hold(held{w: 3, token: 3, call: 20, got: 500, releasing: 530, released: 531}),
	},
}
