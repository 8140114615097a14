package lab

import (
	"context"
	"docent/internal/background"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"docent/bench"
)

// startProfile takes a processor profile of the measurement that begins, and when it is over one of allocations; a heap
// profile is taken in between. They are written where --profile says.
func (l *Lab) startProfile(ctx context.Context, t bench.Target, name string) (end func() error, err error) {
	if l.profileAddress == "" || t.Name != docentTarget {
		return func() error { return nil }, nil
	}
	if err := os.MkdirAll(l.Profiles, 0o755); err != nil {
		return nil, err
	}
	name = strings.ReplaceAll(name, " ", "-")
	const seconds = 5
	done := make(chan error, 1)
	background.Go("bench/lab.startProfile", func() {
		err := l.saveProfile(ctx, fmt.Sprintf("profile?seconds=%d", seconds), name+".cpu")
		if err == nil {
			err = l.saveProfile(ctx, "heap", name+".heap")
		}
		if err == nil {
			err = l.saveProfile(ctx, "goroutine?debug=1", name+".goroutines.txt")
		}
		done <- err
	})
	return func() error {
		if err := <-done; err != nil {
			return err
		}
		return l.saveProfile(ctx, "allocs", name+".allocs")
	}, nil
}

func (l *Lab) saveProfile(ctx context.Context, what, name string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.profileAddress+"/debug/pprof/"+what, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("take a profile: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("take a profile: %s", resp.Status)
	}
	file, err := os.Create(filepath.Join(l.Profiles, name))
	if err != nil {
		return err
	}
	if _, err := io.Copy(file, resp.Body); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}
