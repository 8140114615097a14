package budget

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"
)

func address(i int) netip.Addr { return netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)}) }

// fill takes as much for an address as it gets.
func fill(t *Table, a *Account) (n int) {
	for t.Take(Streams, 1, a) == Taken {
		n++
	}
	return n
}

func TestOneClientTakesAShareAndTheNextFindsSomethingLeft(t *testing.T) {
	table := New(5, map[Kind]Pool{Streams: {Max: 20_000}})
	first := table.Client(address(1))
	if n := fill(table, first); n < 900 || n > 1000 {
		t.Errorf("one client took %d of 20000", n)
	}
	for i := 2; i < 90; i++ {
		if n := fill(table, table.Client(address(i))); n < Least {
			t.Fatalf("client %d found %d", i, n)
		}
	}
	if v := table.Take(Streams, 1, first); v != Used {
		t.Errorf("who holds its share got %v", v)
	}
	for range 50 {
		table.Give(Streams, 1, first)
	}
	if open := table.Open(Streams); open >= 20_000 {
		t.Errorf("%d are open", open)
	}
}

func TestNobodyGetsMoreThanThereIs(t *testing.T) {
	table := New(50, map[Kind]Pool{Streams: {Max: 20}, Connections: {Max: 20, Soft: true}})
	taken := 0
	for i := range 10 {
		taken += fill(table, table.Client(address(i)))
	}
	if taken != 20 || table.Take(Streams, 1, nil) != Full {
		t.Errorf("%d of 20 were taken", taken)
	}
	for i := range 30 {
		if v := table.Take(Connections, 1, table.Client(address(i))); v != Taken {
			t.Errorf("connection %d of a soft bound: %v", i, v)
		}
	}
}

func TestWhatIsTakenForTwoIsTakenForBothOrNone(t *testing.T) {
	table := New(5, map[Kind]Pool{Streams: {Max: 1000}})
	key := table.Key("pub", 1)
	for i := range Least {
		if v := table.Take(Streams, 1, table.Client(address(i)), key); v != Taken {
			t.Fatalf("%d: %v", i, v)
		}
	}
	last := table.Client(address(99))
	v, held := table.Take(Streams, 1, last, key), last.held[Streams].Load()
	if v != Used || held != 0 || table.Open(Streams) != Least {
		t.Errorf("over the key's share: %v, the client holds %d, open are %d", v, held, table.Open(Streams))
	}
	if v := table.Take(Streams, 1, last); v != Taken {
		t.Errorf("with another key: %v", v)
	}
}

func TestAnIPv6ClientIsItsNetwork(t *testing.T) {
	table := New(5, map[Kind]Pool{Streams: {Max: 100}})
	a := table.Client(netip.MustParseAddr("2001:db8:1:2::1"))
	b := table.Client(netip.MustParseAddr("2001:db8:1:2:ffff::7"))
	c := table.Client(netip.MustParseAddr("2001:db8:1:3::1"))
	if a != b || a == c {
		t.Error("a client is not its /64")
	}
	if New(100, nil).Client(address(1)) != nil {
		t.Error("a share of all bounds a client")
	}
}

func TestClientsThatHoldNothingAreForgotten(t *testing.T) {
	table := New(5, map[Kind]Pool{Streams: {Max: 100}})
	kept := table.Client(address(0))
	table.Take(Streams, 1, kept)
	for i := range 3 * shards * remembered {
		table.Client(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})).Done()
	}
	n := 0
	for i := range table.shards {
		n += len(table.shards[i].accounts)
	}
	if n > shards*remembered+1 {
		t.Errorf("%d clients are remembered", n)
	}
	if table.Client(address(0)) != kept || kept.held[Streams].Load() != 1 {
		t.Error("a client that holds something was forgotten")
	}
}

func TestUsesAreCountedWithinTheirWindow(t *testing.T) {
	table := New(5, nil)
	now := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	for i := range 5 {
		if got := table.Use("a", now, time.Hour, 3); got != (i < 3) {
			t.Errorf("use %d: %t", i, got)
		}
	}
	if left := table.Left("a", now, time.Hour, 3); left != 0 {
		t.Errorf("%d left", left)
	}
	if !table.Use("b", now, time.Hour, 3) || !table.Use("a", now.Add(time.Hour), time.Hour, 3) {
		t.Error("another key, or another hour, is refused")
	}
}

func TestManyAtOnceLeaveNothingBehind(t *testing.T) {
	table := New(5, map[Kind]Pool{Streams: {Max: 200}})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 2000 {
				a, key := table.Client(address((i+j)%5)), table.Key(fmt.Sprint(j%3), 400)
				if table.Take(Streams, 1, a, key) == Taken {
					table.Give(Streams, 1, a, key)
				}
				a.Done()
				key.Done()
			}
		})
	}
	all.Wait()
	if open := table.Open(Streams); open != 0 {
		t.Errorf("%d are open", open)
	}
	for i := range 5 {
		if held := table.Client(address(i)).held[Streams].Load(); held != 0 {
			t.Errorf("client %d holds %d", i, held)
		}
	}
}

// BenchmarkAdmission is what a request costs: its client's account, a place, and both given back.
func BenchmarkAdmission(b *testing.B) {
	table := New(5, map[Kind]Pool{Requests: {Max: 20_000}})
	addr := address(1)
	b.ReportAllocs()
	for b.Loop() {
		a := table.Client(addr)
		table.Take(Requests, 1, a)
		table.Give(Requests, 1, a)
		a.Done()
	}
}
