/* One lock, its queue and N clients, for Spin. docs/protocol.md, section Model, says
 * what is modelled and what is not; `make model` checks it.
 *
 * The network loses, delays, repeats and re-orders: a request that was sent may
 * arrive at any time and any number of times (copy), a grant may be lost (told).
 * Time is what may happen next, under two rules: trust ends before the lease that
 * it rests on, and an ended nonce is kept for as long as a copy of its acquire counts.
 *
 * -DN=n sets the number of clients. Each of the other switches takes one rule of
 * the protocol out, and must give a trail.
 */

#ifndef N
#define N 4
#endif
#define NONE 255

/* What a client is doing. Trust is being in HOLDS. A crashed one is silent, and so,
 * to the others, is one that is frozen or cut off. */
#define IDLE 0    /* no acquisition under way: the next has a new nonce */
#define ASKS 1    /* has asked, and waits: for an answer, or in the queue */
#define HOLDS 2
#define LEAVES 3  /* cancelled, unlocked or lost: tells the server until it hears so */
#define GONE 4    /* the release has come, a copy of the acquire may yet */
#define CRASHED 5

byte phase[N];
bit copy[N];      /* an acquire of the nonce may still arrive, before its not-after */
bit told[N];      /* a grant is on its way: as a message, or as the answer to a request */

/* The server: what one script changes, it changes in one step. */
byte holder = NONE;
bit queued[N];    /* the nonce has an entry */
byte place[N];   /* its place, which its client keeps when the entry goes */
bit ended[N];     /* the nonce is in 'ended' */
byte issued;      /* the token counter, as stored, and the largest token that left; */
byte largest;     /* both less what they have in common */

bit calm;         /* the faults are over: whoever waits now must be served */

hidden byte i, j, head;

inline drop_place(n) {
	if
	:: place[n] != 0 ->
		for (i : 0 .. N - 1) {
			if
			:: place[i] > place[n] -> place[i]--
			:: else
			fi
		}
		place[n] = 0
	:: else
	fi
}

inline grant(n) {
	/* Nobody trusts a hold beside it, and nobody is granted what nobody will release. */
	for (j : 0 .. N - 1) {
		assert(phase[j] != HOLDS);
		assert(j == n || !queued[j] || (place[n] != 0 && place[n] < place[j]))
	}
	assert(phase[n] != IDLE && phase[n] != GONE);
	holder = n;
	queued[n] = 0;
	told[n] = 1;
	issued++;
	assert(issued > largest);
	largest = issued;
#ifdef TOKEN_STORED_AT_RELEASE
	issued--;
#else
	issued = 0;
	largest = 0;
#endif
#ifdef NO_LEASE_ON_ENTRIES
	leased = 0
#endif
}

#ifdef NO_LEASE_ON_ENTRIES
bit leased;       /* the holder has renewed: before that its lease is its entry's */
#endif
#if defined(LAPSED_LEASE_REVIVES) || defined(RELEASE_ONLY_DEQUEUES)
#define REMEMBER_HOLDS
bit held[N];      /* the acquisition has been a hold */
#endif

inline settle() {
	if
#ifdef GRANT_WITHOUT_RECHECK
	:: true ->
#else
	:: holder == NONE ->
#endif
		head = NONE;
		for (j : 0 .. N - 1) {
			if
			:: queued[j] && (head == NONE || place[j] < place[head]) -> head = j
			:: else
			fi
		}
		if
		:: head != NONE -> grant(head)
		:: else
		fi
	:: else
	fi
}

/* acquire.lua: a first request, a heartbeat, and a late copy of either. */
inline acquire(n) {
	if
	:: ended[n]
	:: !ended[n] && holder == n ->
		if
		:: phase[n] == ASKS -> told[n] = 1
		:: else
		fi
	:: !ended[n] && holder != n ->
#ifdef NEWCOMER_TAKES_A_FREE_LOCK
		if
		:: holder == NONE && place[n] == 0 -> grant(n)
		:: else
		fi;
#endif
		if
		:: holder != n && !queued[n] ->
			if
			:: place[n] == 0 ->
				for (i : 0 .. N - 1) {
					if
					:: place[i] > place[n] -> place[n] = place[i]
					:: else
					fi
				}
				place[n]++
			:: else
			fi;
			queued[n] = 1;
			settle()
		:: holder != n && queued[n] ->
#ifndef HEARTBEAT_WITHOUT_SETTLE
			settle()
#else
			skip
#endif
		:: else
		fi
	fi
}

/* release.lua: of a nonce, whatever it has come to. */
inline release(n) {
	queued[n] = 0;
	if
#ifdef RELEASE_OF_ANY_NONCE
	:: holder != NONE -> holder = NONE
#else
#ifdef RELEASE_ONLY_DEQUEUES
	:: holder == n && held[n] -> holder = NONE
#else
	:: holder == n -> holder = NONE
#endif
#endif
	:: else
	fi;
#ifdef TOKEN_STORED_AT_RELEASE
	issued = 0;
	largest = 0;
#endif
#ifndef ENDED_NONCE_NOT_KEPT
	ended[n] = copy[n];
#endif
	settle();
	assert(holder != n && !queued[n])
}

#define DONE(n) (phase[n] == IDLE || phase[n] == GONE || phase[n] == CRASHED)
#if N == 2
#define ALL_DONE (DONE(0) && DONE(1))
#elif N == 3
#define ALL_DONE (DONE(0) && DONE(1) && DONE(2))
#else
#define ALL_DONE (DONE(0) && DONE(1) && DONE(2) && DONE(3))
#endif
#define SERVED (ALL_DONE && holder == NONE)

/* A heartbeat that changes nothing is no step: a waiter left with such alone is
 * one whom nobody will wake, and Spin sees that nothing moves. */
#ifdef WAITER_NEVER_ASKS_AGAIN
#define ASKING(n) (place[n] == 0)
#else
#ifdef HEARTBEAT_WITHOUT_SETTLE
#define ASKING(n) (holder == n && !told[n] || holder != n && !queued[n])
#else
#define ASKING(n) (holder == n && !told[n] || holder != n && (!queued[n] || holder == NONE))
#endif
#endif

#ifdef TRUST_OUTLIVES_THE_LEASE
#define LEASE_MAY_END(n) true
#elif defined(NO_LEASE_ON_ENTRIES)
#define LEASE_MAY_END(n) (phase[n] != HOLDS && leased)
#else
#define LEASE_MAY_END(n) (phase[n] != HOLDS)
#endif

active [N] proctype client() {
	do
	/* The client. */
	:: d_step { !calm && phase[_pid] == IDLE -> phase[_pid] = ASKS; copy[_pid] = 1 }
	:: d_step { phase[_pid] == ASKS && told[_pid] ->
		/* The grant is believed once, for a nonce that waits. */
		told[_pid] = 0;
		phase[_pid] = HOLDS;
		drop_place(_pid);
#ifdef NO_LEASE_ON_ENTRIES
		leased = 1;
#endif
#ifdef REMEMBER_HOLDS
		held[_pid] = 1;
#endif
		assert(holder == _pid) }
	:: d_step { phase[_pid] == HOLDS -> phase[_pid] = LEAVES } /* unlocks, or its trust ends */
	:: d_step { !calm && phase[_pid] == ASKS ->                /* its context ends */
#ifdef WAITER_GOES_WITHOUT_A_WORD
		phase[_pid] = GONE
#else
		phase[_pid] = LEAVES
#endif
		}
	:: d_step { phase[_pid] != IDLE && phase[_pid] != CRASHED && phase[_pid] != GONE && !calm -> phase[_pid] = CRASHED }
#ifdef GRANT_BELIEVED_AFTER_LEAVING
	:: d_step { phase[_pid] == GONE && told[_pid] -> told[_pid] = 0; phase[_pid] = HOLDS; assert(holder == _pid) }
#endif

	/* Its requests. */
	:: d_step { phase[_pid] == ASKS && ASKING(_pid) -> acquire(_pid) }
	:: d_step { !calm && phase[_pid] != ASKS && copy[_pid] -> acquire(_pid) }
	:: d_step { phase[_pid] == LEAVES ->
		release(_pid);
#ifndef GRANT_BELIEVED_AFTER_LEAVING
		told[_pid] = 0;
#endif
		drop_place(_pid);
#ifdef REMEMBER_HOLDS
		held[_pid] = 0;
#endif
		phase[_pid] = GONE }
#ifdef LAPSED_LEASE_REVIVES
	:: d_step { held[_pid] && phase[_pid] == LEAVES && holder != _pid ->
		holder = _pid;
		for (j : 0 .. N - 1) {
			assert(phase[j] != HOLDS)
		};
		skip }
#endif

	/* What the network and time do. */
	:: d_step { !calm && told[_pid] -> told[_pid] = 0 }
	:: d_step { copy[_pid] && phase[_pid] != ASKS ->           /* its not-after has passed */
#ifndef LATE_COPY_COUNTS
		copy[_pid] = 0;
#endif
		ended[_pid] = 0 }
	:: d_step { queued[_pid] && (!calm || phase[_pid] == CRASHED) ->
		/* The entry's lease ends, or nobody was subscribed to the grant. */
#ifdef NO_LEASE_ON_ENTRIES
		skip
#else
		queued[_pid] = 0
#endif
		}
	:: d_step { holder == _pid && (!calm || phase[_pid] == CRASHED) && LEASE_MAY_END(_pid) ->
		holder = NONE;
#ifndef GRANT_BELIEVED_LATE
		told[_pid] = 0 /* counted from its request, it is worth nothing any more */
#endif
		}
	:: d_step { !calm && (phase[_pid] == GONE || phase[_pid] == CRASHED) && !copy[_pid] && holder != _pid && !queued[_pid] ->
		told[_pid] = 0;
		drop_place(_pid);
#ifdef REMEMBER_HOLDS
		held[_pid] = 0;
#endif
		phase[_pid] = IDLE }
	:: calm && SERVED -> break
	od
}

active proctype faults() { calm = 1 }

/* Once the faults are over everybody who lives is served. */
ltl served { [] (calm -> <> SERVED) }
