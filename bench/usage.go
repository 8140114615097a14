package bench

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Usage is what a server's process uses, by its own metrics. Counters are since its start, or in a Result during the
// measurement.
type Usage struct {
	CPU      float64 `json:"cpu"`      // seconds of processor time
	Resident int64   `json:"resident"` // bytes of memory
	// bytes of it that stand for no file; 0 where the server does not tell
	Anonymous int64 `json:"anonymous,omitempty"`
	// bytes of it that objects take, those that nobody uses any more among them
	Heap        int64   `json:"heap"`
	Stacks      int64   `json:"stacks"` // bytes of goroutine stacks
	Goroutines  int64   `json:"goroutines"`
	OpenFiles   int64   `json:"openFiles"`
	Allocations int64   `json:"allocations"` // objects allocated
	Allocated   int64   `json:"allocated"`   // bytes allocated
	Collections int64   `json:"collections"` // by the garbage collector
	Pauses      float64 `json:"pauses"`      // seconds that it stopped everything
	Flushes     int64   `json:"flushes"`     // writes to readers of streams
}

// since is what was used after before; memory and counts are as they are now.
func (u Usage) since(before Usage) Usage {
	u.CPU -= before.CPU
	u.Allocations -= before.Allocations
	u.Allocated -= before.Allocated
	u.Collections -= before.Collections
	u.Pauses -= before.Pauses
	u.Flushes -= before.Flushes
	return u
}

// Compressing its metrics would cost the server more than gathering them.
var metricsClient = &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableCompression: true}}

// ServerUsage reads a server's metrics.
func ServerUsage(ctx context.Context, url string) (Usage, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", nil)
	if err != nil {
		return Usage{}, err
	}
	resp, err := metricsClient.Do(req)
	if err != nil {
		return Usage{}, fmt.Errorf("read the server's metrics: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return Usage{}, fmt.Errorf("read the server's metrics: %s", resp.Status)
	}
	var u Usage
	whole := map[string]*int64{
		"process_resident_memory_bytes": &u.Resident, "docent_anonymous_memory_bytes": &u.Anonymous,
		"go_memstats_heap_alloc_bytes": &u.Heap, "go_memstats_stack_inuse_bytes": &u.Stacks,
		"go_goroutines": &u.Goroutines, "process_open_fds": &u.OpenFiles, "go_memstats_mallocs_total": &u.Allocations,
		"go_memstats_alloc_bytes_total": &u.Allocated, "go_gc_duration_seconds_count": &u.Collections,
	}
	seconds := map[string]*float64{"process_cpu_seconds_total": &u.CPU, "go_gc_duration_seconds_sum": &u.Pauses}
	scanner := bufio.NewScanner(resp.Body)
	for scanner.Scan() {
		name, value, ok := strings.Cut(scanner.Text(), " ")
		if !ok {
			continue
		}
		name, _, labeled := strings.Cut(name, "{")
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			continue
		}
		switch {
		case name == "docent_stream_flushes_total":
			u.Flushes += int64(number)
		case labeled:
		case whole[name] != nil:
			*whole[name] = int64(number)
		case seconds[name] != nil:
			*seconds[name] = number
		}
	}
	return u, scanner.Err()
}
