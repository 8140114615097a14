package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
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
)

// The operator's commands (project, key, index, pull) run where the data directory is: in the serving process where
// there is one, so that they take effect at once, and otherwise in the command's own process. To a serving process
// they go over a loopback listener of its own, whose address and secret stand in a file that only the data
// directory's owner can read.

const controlFile = "control.json"

type controlAddress struct {
	Address string `json:"address"`
	Secret  string `json:"secret"`
}

// A controlLine is one line of an answer: progress while the operation runs, and at the end a result or an error.
type controlLine struct {
	Progress *progressLine   `json:"progress,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	Error    *controlError   `json:"error,omitempty"`
}

type progressLine struct {
	Text  string `json:"text"`
	Done  int    `json:"done"`
	Total int    `json:"total"`
}

type controlError struct {
	Message  string        `json:"message"`
	Problems []api.Problem `json:"problems,omitempty"`
}

func (e *controlError) Error() string {
	if len(e.Problems) > 0 {
		return (&api.InvalidError{Problems: e.Problems}).Error()
	}
	return e.Message
}

// serveControl lets the operator's commands reach this process until the returned function is called.
func serveControl(dir *dataDir, ops *operations, log *slog.Logger) (stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the operator's commands: %w", err)
	}
	secret := rand.Text()
	server := &http.Server{
		ReadHeaderTimeout: 5 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+secret)) != 1 {
				http.Error(w, "unauthorized", http.StatusUnauthorized)
				return
			}
			answerControl(w, r, ops, log)
		}),
	}
	text, _ := json.Marshal(controlAddress{Address: listener.Addr().String(), Secret: secret})
	if err := writeFileAtomic(dir.file(controlFile), text, 0o600); err != nil {
		listener.Close()
		return nil, fmt.Errorf("write %s: %w", controlFile, err)
	}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the operator's listener ended", "error", err)
		}
	}()
	return func() {
		os.Remove(dir.file(controlFile))
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			server.Close()
		}
	}, nil
}

func answerControl(w http.ResponseWriter, r *http.Request, ops *operations, log *slog.Logger) {
	params, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	encoder := json.NewEncoder(w)
	flush := http.NewResponseController(w).Flush
	name := strings.TrimPrefix(r.URL.Path, "/")
	result, err := ops.run(r.Context(), name, params, func(text string, done, total int) {
		_ = encoder.Encode(controlLine{Progress: &progressLine{text, done, total}})
		_ = flush()
	})
	line := controlLine{Result: result}
	if err != nil {
		line = controlLine{Error: &controlError{Message: err.Error()}}
		var invalid *api.InvalidError
		if errors.As(err, &invalid) {
			line.Error.Problems = invalid.Problems
		}
		log.Warn("operator's command refused", "command", name, "error", err)
	} else {
		log.Info("operator's command", "command", name)
	}
	_ = encoder.Encode(line)
}

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
		answer, err := operateRemote(ctx, c.Data, name, text, progress)
		if errors.Is(err, errNoServer) {
			answer, err = here(ctx, c, name, text, progress)
			var locked *lockedError
			if errors.As(err, &locked) && locked.holder.Command == serveCommand && time.Now().Before(patience) {
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

var errNoServer = errors.New("no server has this data directory")

func operateRemote(ctx context.Context, data, name string, params []byte, progress Progress) (json.RawMessage, error) {
	text, err := os.ReadFile(filepath.Join(data, controlFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoServer
	}
	if err != nil {
		return nil, err
	}
	var control controlAddress
	if err := json.Unmarshal(text, &control); err != nil {
		return nil, fmt.Errorf("read %s: %w", controlFile, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+control.Address+"/"+name, bytes.NewReader(params))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+control.Secret)
	resp, err := (&http.Client{Transport: &http.Transport{Proxy: nil}}).Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, errNoServer // the file is what a killed server left behind
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, errNoServer // another process has the port now
	}
	scanner := bufio.NewScanner(resp.Body)
	scanner.Buffer(nil, 64<<20)
	for scanner.Scan() {
		var line controlLine
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			return nil, fmt.Errorf("read the server's answer: %w", err)
		}
		switch {
		case line.Progress != nil:
			progress(line.Progress.Text, line.Progress.Done, line.Progress.Total)
		case line.Error != nil:
			return nil, line.Error
		default:
			return line.Result, nil
		}
	}
	return nil, errors.Join(errors.New("the server stopped before it answered"), scanner.Err())
}

// operateHere opens the stores that the operations need in this process.
func operateHere(ctx context.Context, c Config, name string, params []byte, progress Progress) (json.RawMessage, error) {
	dir, err := openDataDir(c.Data, "command", 30*time.Second)
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
