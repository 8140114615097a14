package main

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
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"docent/api"
)

// The operator's commands (project, key, index, pull) run where the data directory is: in the serving process where
// there is one, so that they take effect at once, and otherwise in the command's own process. To a serving process
// they go over a Unix socket in the data directory, which only the directory's owner can open. So each side knows that
// the other one is the owner's: nobody else can take the place of a server that was killed.

const (
	controlSocket = "control.sock"
	// controlFile held the address and the secret of older versions.
	controlFile = "control.json"
)

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
	for _, left := range []string{controlSocket, controlFile} { // by a server that was killed; its lock is ours now
		if err := os.Remove(dir.file(left)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("clear what an earlier server left: %w", err)
		}
	}
	listener, err := listenControl(dir.file(controlSocket))
	if err != nil {
		return nil, fmt.Errorf("listen for the operator's commands: %w", err)
	}
	server := &http.Server{
		ReadHeaderTimeout: 5 * time.Second,
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answerControl(w, r, ops, log) }),
	}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the operator's listener ended", "error", err)
		}
	}()
	return func() {
		os.Remove(dir.file(controlSocket))
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			server.Close()
		}
	}, nil
}

// longestSocket is how long the path of a Unix socket may be: 107 bytes on Linux, 103 on other systems.
const longestSocket = 103

// socketPath makes a path that is short enough. Where it has to hold a folder open for that, done lets it go.
func socketPath(path string) (short string, done func(), err error) {
	if len(path) <= longestSocket {
		return path, func() {}, nil
	}
	if runtime.GOOS != "linux" {
		return "", nil, fmt.Errorf("the path %s is longer than the %d bytes that this system allows: use a data directory with a shorter name", path, longestSocket)
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), filepath.Base(path)), func() { folder.Close() }, nil
}

// listenControl makes the socket, which only its owner can open from the moment when it is there.
func listenControl(path string) (net.Listener, error) {
	short, done, err := socketPath(path)
	if err != nil {
		return nil, err
	}
	defer done()
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) {
			_ = unix.Fchmod(int(fd), 0o600) // Linux gives the file the mode of the socket; elsewhere this may not be possible
		})
	}}
	listener, err := config.Listen(context.Background(), "unix", short)
	if err != nil {
		return nil, err
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false) // a successor's may stand there by then
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

func dialControl(ctx context.Context, path string) (net.Conn, error) {
	short, done, err := socketPath(path)
	if err != nil {
		return nil, err
	}
	defer done()
	return new(net.Dialer).DialContext(ctx, "unix", short)
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
	socket := filepath.Join(data, controlSocket)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://docent/"+name, bytes.NewReader(params))
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialControl(ctx, socket)
	}}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("the server on %s belongs to another user: %w", data, err)
	default:
		return nil, errNoServer // there is no socket, or the one that a killed server left behind
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers %s", resp.Status)
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
	if name != opProjectAdd {
		if ok, err := isDataDir(c.Data); err != nil {
			return nil, unwritable(c.Data, err)
		} else if !ok {
			return nil, noDataDir(c.Data)
		}
	}
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
