// Package relock is a distributed lock SDK on Redis, with the contracts of
// Java's java.util.concurrent.locks.
package relock
