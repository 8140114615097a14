// Package control carries the operator's commands to the process that serves a data directory.
//
// The commands (project, key, index, pull and so on) run where the data directory is: in the serving process where
// there is one, so that they take effect at once, and otherwise in the command's own process. To a serving process
// they go over a Unix socket in the data directory, which only the directory's owner can open, and on Windows over a pipe
// whose name only the owner can read there. So each side knows that the other one is the owner's: nobody else can take the
// place of a server that was killed.
package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"docent/api"
	"docent/internal/background"
	"docent/persistence/datadir"
)

// Address is the operation that says where the server listens. Health checks ask for it every few seconds: in the log it
// is a detail.
const Address = "address"

// Run performs one operation by name and tells how far it is.
type Run func(ctx context.Context, name string, params json.RawMessage,
	progress func(text string, done, total int)) (json.RawMessage, error)

// A line is one line of an answer: progress while the operation runs, and at the end a result or an error.
type line struct {
	Progress *progressed     `json:"progress,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	Error    *Error          `json:"error,omitempty"`
}

type progressed struct {
	Text  string `json:"text"`
	Done  int    `json:"done"`
	Total int    `json:"total"`
}

// An Error is what the serving process answers to an operation that it refuses.
type Error struct {
	Message  string        `json:"message"`
	Problems []api.Problem `json:"problems,omitempty"`
}

func (e *Error) Error() string {
	if len(e.Problems) > 0 {
		return (&api.InvalidError{Problems: e.Problems}).Error()
	}
	return e.Message
}

// Serve lets the operator's commands reach this process until the returned function is called.
func Serve(dir *datadir.Dir, run Run, log *slog.Logger) (stop func(), err error) {
	// by a server that was killed; its lock is ours now
	for _, left := range []string{datadir.Socket, datadir.OldControl} {
		if err := os.Remove(dir.File(left)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("clear what an earlier server left: %w", err)
		}
	}
	listener, err := listen(dir.File(datadir.Socket))
	if err != nil {
		return nil, fmt.Errorf("listen for the operator's commands: %w", err)
	}
	server := &http.Server{
		ReadHeaderTimeout: 5 * time.Second,
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r, run, log) }),
	}
	background.Go("cmd/docent/control.Serve", func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the listener for operator commands failed", "error", err)
		}
	})
	return func() {
		os.Remove(dir.File(datadir.Socket))
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			server.Close()
		}
	}, nil
}

func answer(w http.ResponseWriter, r *http.Request, run Run, log *slog.Logger) {
	params, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	encoder := json.NewEncoder(w)
	flush := http.NewResponseController(w).Flush
	name := strings.TrimPrefix(r.URL.Path, "/")
	result, err := run(r.Context(), name, params, func(text string, done, total int) {
		_ = encoder.Encode(line{Progress: &progressed{text, done, total}})
		_ = flush()
	})
	last := line{Result: result}
	if err != nil {
		last = line{Error: &Error{Message: err.Error()}}
		if invalid, ok := errors.AsType[*api.InvalidError](err); ok {
			last.Error.Problems = invalid.Problems
		}
		log.Warn("refused an operator command", "command", name, "error", err)
	} else {
		level := slog.LevelInfo
		if name == Address {
			level = slog.LevelDebug
		}
		log.Log(r.Context(), level, "operator's command", "command", name)
	}
	_ = encoder.Encode(last)
}

// ErrNoServer says that no process serves a data directory.
var ErrNoServer = errors.New("no server has this data directory")

// Call has the process that serves a data directory perform one operation.
func Call(ctx context.Context, data, name string, params []byte, progress func(text string, done,
	total int)) (json.RawMessage, error) {
	socket := filepath.Join(data, datadir.Socket)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://docent/"+name, bytes.NewReader(params))
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dial(ctx, socket)
		}}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("the server on %s belongs to another user: %w", data, err)
	default:
		return nil, ErrNoServer // there is no socket, or the one that a killed server left behind
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers %s", resp.Status)
	}
	scanner := bufio.NewScanner(resp.Body)
	scanner.Buffer(nil, 64<<20)
	for scanner.Scan() {
		var next line
		if err := json.Unmarshal(scanner.Bytes(), &next); err != nil {
			return nil, fmt.Errorf("read the server's answer: %w", err)
		}
		switch {
		case next.Progress != nil:
			progress(next.Progress.Text, next.Progress.Done, next.Progress.Total)
		case next.Error != nil:
			return nil, next.Error
		default:
			return next.Result, nil
		}
	}
	return nil, errors.Join(errors.New("the server stopped before it answered"), scanner.Err())
}
