//go:build unix

package forward

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
)

// BenchmarkHop is a small request that another node answers, beside one that is answered here.
func BenchmarkHop(b *testing.B) {
	for _, owner := range []string{"a", "b"} {
		b.Run(map[string]string{"a": "here", "b": "forwarded"}[owner], func(b *testing.B) {
			c, nodes := build(b, "a", "b")
			c.own("x", owner)
			get(b, nodes["a"], "/x")
			for b.Loop() {
				get(b, nodes["a"], "/x")
			}
		})
	}
}

// BenchmarkStreams has a thousand streams open, which another node writes or this one, and a part written to each of
// them per round. Both nodes and the readers are in this process.
func BenchmarkStreams(b *testing.B) {
	const streams = 1000
	for _, owner := range []string{"a", "b"} {
		b.Run(map[string]string{"a": "here", "b": "forwarded"}[owner], func(b *testing.B) {
			c, nodes := build(b, "a", "b")
			c.own("x", owner)
			round := sync.NewCond(new(sync.Mutex))
			n := 0
			nodes[owner].serve = func(w http.ResponseWriter, req *http.Request) {
				rc := http.NewResponseController(w)
				for seen := 0; ; {
					fmt.Fprintf(w, "data: {\"type\":\"text-delta\",\"delta\":\"word\"}\n\n")
					if rc.Flush() != nil {
						return
					}
					round.L.Lock()
					for n == seen {
						round.Wait()
					}
					seen = n
					round.L.Unlock()
					if seen < 0 {
						return
					}
				}
			}
			before := heap()
			transport := &http.Transport{MaxIdleConnsPerHost: streams}
			defer transport.CloseIdleConnections()
			bodies := make([]io.ReadCloser, streams)
			for i := range bodies {
				res, err := (&http.Client{Transport: transport}).Get(nodes["a"].edge.URL + "/x")
				if err != nil {
					b.Fatal(err)
				}
				bodies[i] = res.Body
			}
			buf := make([]byte, 200)
			for _, body := range bodies {
				if _, err := body.Read(buf); err != nil {
					b.Fatal(err)
				}
			}
			memory := float64(heap()-before) / streams
			began := cpu()
			for b.Loop() {
				round.L.Lock()
				n++
				round.L.Unlock()
				round.Broadcast()
				for _, body := range bodies {
					if _, err := body.Read(buf); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64((cpu()-began).Nanoseconds())/float64(b.N)/streams, "cpu-ns/part")
			b.ReportMetric(memory, "B/stream")
			round.L.Lock()
			n = -1
			round.L.Unlock()
			round.Broadcast()
			for _, body := range bodies {
				body.Close()
			}
		})
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// cpu is the processor time of the process.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
