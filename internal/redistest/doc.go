// Package redistest provides the servers and the bad links that tests of this
// module run against. It is imported by tests only.
//
// [Start] runs a Redis inside a [testing/synctest] bubble: time is the bubble's,
// keys expire by it to the nanosecond, and no socket is touched. [Real] runs the
// redis-server binary. [Link] stands between a client and either of them and
// decides the fate of single commands: which never arrive, which execute without
// an answer, which arrive late or twice.
package redistest
