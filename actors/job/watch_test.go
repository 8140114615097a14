package job

import (
	"strconv"
	"testing"
	"time"

	"docent/actors/persistent"
	"docent/persistence/cluster"
)

// TestWatchersThatHaveGoneAreForgotten holds the actor to memory that does not grow with pollers that gave up, and to
// answering each of those that wait once.
func TestWatchersThatHaveGoneAreForgotten(t *testing.T) {
	s, err := play(t, state{id: testID}, create("x"))
	if err != nil {
		t.Fatal(err)
	}
	a := New(testID, &Deps{Deps: persistent.Deps{Now: time.Now, Place: cluster.Single{}}}, nil)
	a.State, a.Seq = s, s.seq
	gone := make(chan struct{})
	close(gone)
	answered := 0
	watch := func(gone chan struct{}) {
		a.Command(Watch{Project: "p", After: a.Seq, Until: time.Now().Add(time.Hour), Log: true}, gone,
			func(r Reply, err error) {
				answered++
				if err != nil || len(r.Log) != 1 || r.Log[0].Text != "news" {
					t.Errorf("%+v, %v", r.Log, err)
				}
			})
	}
	const waiting = 100
	for range waiting {
		watch(nil)
	}
	for range 10_000 {
		watch(gone)
		if n := len(a.watchers); n > 4*waiting {
			t.Fatalf("%d watchers are kept", n)
		}
	}
	left := len(a.watchers)
	a.State = a.State.apply(Progressed{Text: "news", At: t0})
	a.Seq = a.State.seq
	a.wakeWatchers()
	if answered != left || answered < waiting || len(a.watchers) != 0 {
		t.Errorf("%d of %d were answered, %d wait still", answered, left, len(a.watchers))
	}
}

// BenchmarkAnEventThatIsFollowed is what one event costs the actor with so many who follow the job: each is answered,
// and asks for the next.
func BenchmarkAnEventThatIsFollowed(b *testing.B) {
	for _, followers := range []int{1, 100, 10_000} {
		b.Run(strconv.Itoa(followers), func(b *testing.B) {
			a := New(testID, &Deps{Deps: persistent.Deps{Now: time.Now, Place: cluster.Single{}}}, nil)
			a.State = state{id: testID}.apply(Created{Project: "p", Job: testID, At: t0})
			a.Seq = a.State.seq
			until := time.Now().Add(time.Hour)
			ready := make([]int, 0, followers)
			watch := func(n int) {
				a.Command(Watch{Project: "p", After: a.Seq, Until: until, Log: true}, nil,
					func(Reply, error) { ready = append(ready, n) })
			}
			for n := range followers {
				watch(n)
			}
			for b.Loop() {
				a.State = a.State.apply(Progressed{Text: "news", At: t0})
				a.Seq = a.State.seq
				a.wakeWatchers()
				again := ready
				ready = ready[:0]
				for _, n := range again {
					watch(n)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(followers), "ns/follower")
		})
	}
}
