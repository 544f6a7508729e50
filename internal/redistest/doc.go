// Package redistest provides the servers and the bad links that tests of this
// module run against, and users' tests through package relocktest.
//
// [Start] runs a Redis in memory, and no socket is touched. Inside a [testing/synctest] bubble time is the bubble's,
// and keys expire by it to the nanosecond. [Real] runs the redis-server binary. [Link] stands between a client and
// either of them and decides the fate of single commands: which never arrive, which execute without an answer, which
// arrive late or twice.
package redistest
