// Package freeport provides tests with ports for servers that are not up yet, or are down now and then.
package freeport

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
)

// The ports are above those that browsers refuse, and below those that the system gives out by itself: no connection
// takes one before its server is up, or while that is down.
const first, span = 20_000, 12_000

var (
	start = rand.IntN(span) // processes of tests run side by side
	given atomic.Int64
)

// On is a port of an address that nobody listens on. A process gives it out once.
func On(t testing.TB, host string) int {
	t.Helper()
	for range span {
		port := first + (start+int(given.Add(1)))%span
		if l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port))); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatalf("%s has no port that is free", host)
	return 0
}
