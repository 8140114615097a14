package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"strings"
	"time"

	"docent/bench"
)

// serveProfiles serves Go's profiles on a listener of their own: they show what the process holds in memory, and taking
// one costs time.
func serveProfiles(address string, log *slog.Logger) (stop func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s for profiles: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := server.Serve(listener); err != http.ErrServerClosed {
			log.Error("profiles are not served any more", "error", err)
		}
	}()
	log.Info("serving profiles", "address", listener.Addr().String())
	return func() { server.Close() }, nil
}

// startProfile takes a processor profile of the measurement that begins, and when it is over one of allocations; a heap
// profile is taken in between. They are written where --profile says.
func (l *lab) startProfile(ctx context.Context, t bench.Target, name string) (end func() error, err error) {
	if l.profile == "" || t.Name != docentTarget || l.profiles == "" {
		return func() error { return nil }, nil
	}
	if err := os.MkdirAll(l.profile, 0o755); err != nil {
		return nil, err
	}
	name = strings.ReplaceAll(name, " ", "-")
	const seconds = 5
	done := make(chan error, 1)
	go func() {
		err := l.saveProfile(ctx, fmt.Sprintf("profile?seconds=%d", seconds), name+".cpu")
		if err == nil {
			err = l.saveProfile(ctx, "heap", name+".heap")
		}
		if err == nil {
			err = l.saveProfile(ctx, "goroutine?debug=1", name+".goroutines.txt")
		}
		done <- err
	}()
	return func() error {
		if err := <-done; err != nil {
			return err
		}
		return l.saveProfile(ctx, "allocs", name+".allocs")
	}, nil
}

func (l *lab) saveProfile(ctx context.Context, what, name string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.profiles+"/debug/pprof/"+what, nil)
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
	file, err := os.Create(filepath.Join(l.profile, name))
	if err != nil {
		return err
	}
	if _, err := io.Copy(file, resp.Body); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}
