// Package relocktest is for tests of code that takes locks. [New] starts a Redis in the
// memory of the test, without a socket; [Server.Client] makes clients of it, and the
// other methods bring about what is hard to meet otherwise: that somebody else holds a
// name ([Server.Hold]), that a hold is lost ([Server.Lose]), that Redis cannot be
// reached ([Server.Partition]) or is down ([Server.Outage]).
//
//	func TestReportIsWrittenOnce(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			srv := relocktest.New(t)
//			time.AfterFunc(time.Hour, srv.Hold("report"))
//			if err := writeReport(t.Context(), srv.Client()); err != nil {
//				t.Error(err)
//			}
//			srv.AssertFree("report")
//		})
//	}
//
// In a bubble of [testing/synctest], as here, time is the bubble's for locks, leases
// and Redis alike: an hour of waiting takes no time, and a lease ends to the
// millisecond. Outside of a bubble all works the same in real time.
//
// Make the Server inside the bubble, by the bubble's t. One that was made outside ends the whole
// test binary: "close of synctest channel from outside bubble".
//
// Virtual time is not free. The test still runs all that happens in it: each client that holds
// renews its lease, and each client that waits asks again. Twenty clients that wait for ten
// minutes keep a processor busy for seconds, and with -race for several times as long.
//
// Code that takes a [relock.Locker], and whose tests are about nothing that a server
// does, can be given a [Fake].
//
// Everything that is started ends with the test. Call the methods of a Server from the goroutine of the test: they
// fail the test if they cannot do what they say.
package relocktest
