package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"docent/cmd/docent/config"
	"docent/cmd/docent/control"
	"docent/cmd/docent/stores"
	"docent/internal/backoff"
	"docent/persistence/datadir"
)

// A Doer does one operation in this process, where no server has the data directory.
type Doer func(ctx context.Context, c config.Config, name string, params []byte, progress Progress) (json.RawMessage, error)

// Operate runs one operation in the process that serves a data directory, or where there is none, here.
func Operate(ctx context.Context, c config.Config, name string, params, result any, progress Progress, here Doer) error {
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
				if backoff.Sleep(ctx, 100*time.Millisecond) == nil {
					continue
				}
			}
		}
		if err != nil || result == nil {
			return err
		}
		return json.Unmarshal(answer, result)
	}
}

// OperateHere opens the stores that the operations need in this process.
func OperateHere(ctx context.Context, c config.Config, name string, params []byte, progress Progress) (json.RawMessage,
	error) {
	open := datadir.OpenUsed
	if name == OpProjectAdd {
		open = datadir.Open
	}
	dir, err := open(c.Data, "command", 30*time.Second)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	stores, err := stores.Open(ctx, dir, c, slog.New(slog.NewTextHandler(os.Stderr,
		&slog.HandlerOptions{Level: slog.LevelError})))
	if err != nil {
		return nil, err
	}
	defer stores.Close()
	return New(stores, nil).Run(ctx, name, params, progress)
}
