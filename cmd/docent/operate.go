package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"docent/control"
	"docent/datadir"
)

// operate runs one operation on a data directory: in the process that serves it, or here.
func operate(ctx context.Context, c Config, name string, params, result any, progress Progress) error {
	return operateWith(ctx, c, name, params, result, progress, operateHere)
}

// operateWith runs one operation in the process that serves a data directory, or where there is none, with here.
func operateWith(ctx context.Context, c Config, name string, params, result any, progress Progress,
	here func(context.Context, Config, string, []byte, Progress) (json.RawMessage, error)) error {
	text, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	patience := time.Now().Add(15 * time.Second)
	for {
		answer, err := control.Call(ctx, c.Data, name, text, progress)
		if errors.Is(err, control.ErrNoServer) {
			answer, err = here(ctx, c, name, text, progress)
			var locked *datadir.LockedError
			if errors.As(err, &locked) && locked.Holder.Command == datadir.Server && time.Now().Before(patience) {
				// A server holds the directory but is not reachable yet, or is on its way out.
				select {
				case <-ctx.Done():
					return err
				case <-time.After(100 * time.Millisecond):
					continue
				}
			}
		}
		if err != nil {
			return err
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(answer, result)
	}
}

// operateHere opens the stores that the operations need in this process.
func operateHere(ctx context.Context, c Config, name string, params []byte, progress Progress) (json.RawMessage, error) {
	if name != opProjectAdd {
		if ok, err := datadir.Used(c.Data); err != nil {
			return nil, datadir.Unwritable(c.Data, err)
		} else if !ok {
			return nil, datadir.Missing(c.Data)
		}
	}
	dir, err := datadir.Open(c.Data, "command", 30*time.Second)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	stores, err := openStores(ctx, dir, c, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	if err != nil {
		return nil, err
	}
	defer stores.Close()
	return stores.operations().run(ctx, name, params, progress)
}
