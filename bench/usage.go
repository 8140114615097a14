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

// Usage is what the server's process uses, by its own metrics.
type Usage struct {
	CPU            time.Duration `json:"cpu"` // processor time
	Resident       int64         `json:"resident"`
	ResidentBefore int64         `json:"residentBefore"`
	OpenFiles      int64         `json:"openFiles"`
	Allocations    int64         `json:"allocations"` // objects allocated
}

// PerStream is the memory that an open stream costs, in bytes, where most were open at once.
func (u Usage) PerStream(most int) int64 {
	if most == 0 {
		return 0
	}
	return (u.Resident - u.ResidentBefore) / int64(most)
}

// ServerUsage reads a server's metrics.
func ServerUsage(ctx context.Context, url string) (Usage, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", nil)
	if err != nil {
		return Usage{}, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return Usage{}, fmt.Errorf("read the server's metrics: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return Usage{}, fmt.Errorf("read the server's metrics: %s", resp.Status)
	}
	var u Usage
	scanner := bufio.NewScanner(resp.Body)
	for scanner.Scan() {
		name, value, ok := strings.Cut(scanner.Text(), " ")
		if !ok {
			continue
		}
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			continue
		}
		switch name {
		case "process_cpu_seconds_total":
			u.CPU = time.Duration(number * float64(time.Second))
		case "process_resident_memory_bytes":
			u.Resident = int64(number)
		case "go_memstats_mallocs_total":
			u.Allocations = int64(number)
		case "process_open_fds":
			u.OpenFiles = int64(number)
		}
	}
	return u, scanner.Err()
}
