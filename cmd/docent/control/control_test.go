package control

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"docent/api"
	"docent/persistence/datadir"
)

// A command reaches the process that serves a data directory, also one whose path is longer than a socket's may be.
// What is refused is refused with its problems, and nobody but the owner can come.
func TestACommandReachesTheServerOfItsDataDirectory(t *testing.T) {
	t.Parallel()
	for _, path := range []string{t.TempDir(), filepath.Join(t.TempDir(), strings.Repeat("long-", 30))} {
		dir, err := datadir.Open(path, datadir.Server, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		silent := func(string, int, int) {}
		if _, err := Call(t.Context(), path, "echo", nil, silent); !errors.Is(err, ErrNoServer) {
			t.Errorf("without a server: %v", err)
		}
		if err := os.WriteFile(dir.File(datadir.Socket), nil, 0o600); err != nil { // a server that was killed left it
			t.Fatal(err)
		}
		problems := []api.Problem{{Field: "cron", Message: "must have five fields"}}
		stop, err := Serve(dir,
			func(_ context.Context, name string, params json.RawMessage, progress func(string, int, int)) (json.RawMessage,
				error) {
				progress("halfway", 1, 2)
				if name != "echo" {
					return nil, &api.InvalidError{Problems: problems}
				}
				return params, nil
			}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		onlyTheOwners(t, dir.File(datadir.Socket))
		heard := ""
		answer, err := Call(t.Context(), path, "echo", []byte(`{"a":1}`), func(text string, done, total int) { heard = text })
		if err != nil || string(answer) != `{"a":1}` || heard != "halfway" {
			t.Errorf("%s, %v, and on the way %q", answer, err, heard)
		}
		var refused *Error
		if _, err := Call(t.Context(), path, "other", nil, silent); !errors.As(err, &refused) || len(refused.Problems) != 1 {
			t.Errorf("what is refused: %v", err)
		}
		stop()
		if _, err := Call(t.Context(), path, "echo", nil, silent); !errors.Is(err, ErrNoServer) {
			t.Errorf("after the stop: %v", err)
		}
	}
}
