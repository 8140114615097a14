//go:build unix

package postgres

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"docent/persistence/catalog/catalogtest"
	"docent/persistence/journal"
	"docent/persistence/quota"
)

// BenchmarkTurn answers what the two appends of a turn cost beside bbolt: the question, with three uses and the claim of
// its chat, and the answer. Processor time is that of this process, its writers included, and of PostgreSQL's backends.
//
//	source scripts/start-postgres; go test -run '^$' -bench Turn -benchtime 20000x ./persistence/journal/postgres
func BenchmarkTurn(b *testing.B) {
	for _, writers := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("bbolt/writers=%d", writers), func(b *testing.B) {
			j, err := journal.Open(filepath.Join(b.TempDir(), "journal.db"), journal.Options{Log: quiet})
			if err != nil {
				b.Fatal(err)
			}
			defer j.Close()
			turns(b, j, writers, func() time.Duration { return 0 })
		})
		b.Run(fmt.Sprintf("postgres/writers=%d", writers), func(b *testing.B) {
			const application = "docent benchmark"
			j := open(b, catalogtest.Postgres(b), Options{Application: application})
			turns(b, j, writers, func() time.Duration { return backends(b, j, application) })
			if err := j.Close(); err != nil {
				b.Error(err)
			}
		})
	}
}

func turns(b *testing.B, j journal.Store, writers int, server func() time.Duration) {
	text := bytes.Repeat([]byte("An answer names its sources. "), 70)
	var left, names atomic.Int64
	write := func(w int) {
		for left.Add(-1) >= 0 {
			n := names.Add(1)
			stream := fmt.Sprintf("thread/thr_%d", n)
			last, err := j.Append(b.Context(), journal.Append{Stream: stream, Pending: true, Urgency: journal.Soon,
				Events: []journal.Event{{Type: "thread.asked.1", Data: text[:300]}},
				Claim: &journal.Claim{Key: fmt.Sprint("chat/", n), Owner: stream, Expires: time.Now().Add(time.Hour),
					Replaces: true},
				Uses: []quota.Use{
					{Name: "project", Key: "project/p", Window: quota.SlidingHour, Limit: 1 << 30},
					{Name: "month", Key: "key/k", Window: quota.CalendarMonth, Limit: 1 << 30},
					{Name: "ip", Key: fmt.Sprint("ip/", w), Window: quota.SlidingDay, Limit: 1 << 30}}})
			if err == nil {
				_, err = j.Append(b.Context(), journal.Append{Stream: stream, After: last, Urgency: journal.Later,
					Events: []journal.Event{{Type: "thread.answered.1", Data: text}}})
			}
			if err != nil {
				b.Error(err)
				return
			}
		}
	}
	run := func(n int) {
		left.Store(int64(n))
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() { write(w) })
		}
		all.Wait()
	}
	run(4 * writers) // plans and pages are there then
	theirs, own := server(), processorTime(b)
	b.ResetTimer()
	run(b.N)
	b.StopTimer()
	own, theirs = processorTime(b)-own, server()-theirs
	each := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(b.N) }
	b.ReportMetric(each(own), "cpu-µs/turn")
	b.ReportMetric(each(theirs), "server-µs/turn")
	b.ReportMetric(each(own+theirs), "both-µs/turn")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "turns/s")
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// backends is the processor time of the server's processes that serve an application, from /proc.
func backends(b *testing.B, j *Journal, application string) (sum time.Duration) {
	b.Helper()
	rows, err := j.reads.Query(b.Context(), "SELECT pid FROM pg_stat_activity WHERE application_name = $1", application)
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var pid int
		if err := rows.Scan(&pid); err != nil {
			b.Fatal(err)
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			b.Skip("the server's processor time cannot be read here: ", err)
		}
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		for _, field := range fields[11:13] { // in user mode and in the kernel, in hundredths of a second
			n, err := strconv.Atoi(string(field))
			if err != nil {
				b.Fatal(err)
			}
			sum += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return sum
}
