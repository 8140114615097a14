// Package systemd implements the server's side of its talk with the service manager: the sockets that the manager
// listens on (sd_listen_fds), when the server is ready, stops or needs longer (sd_notify), and the watchdog.
//
// Without a service manager all of it does nothing.
package systemd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"

	"docent/internal/background"
	"docent/internal/brief"
)

// A Socket is one on which the service manager listens, and stays listening when the server restarts.
type Socket struct {
	Name string // FileDescriptorName= of the socket unit
	net.Listener
}

// Sockets takes the sockets that the service manager passed; a second call finds none. Processes that the server starts
// do not get them.
func Sockets() ([]Socket, error) {
	var list []Socket
	var errs []error
	for _, file := range activation.Files(true) {
		listener, err := net.FileListener(file)
		file.Close() // the listener has a copy
		if err != nil {
			errs = append(errs, fmt.Errorf("the socket %s that the service manager passed: %w", file.Name(), err))
			continue
		}
		list = append(list, Socket{file.Name(), listener})
	}
	if len(errs) > 0 {
		for _, s := range list {
			s.Close()
		}
		return nil, errors.Join(errs...)
	}
	return list, nil
}

// A Notifier reports the server's state to the service manager.
type Notifier struct {
	log  *slog.Logger
	send func(state string) error
	// watchdog is how long the manager waits for a ping before it ends the server; 0 if it waits for none.
	watchdog time.Duration
	used     func() time.Duration // processor time of this process so far
}

// New makes a Notifier of what the service manager has put into the environment.
func New(log *slog.Logger) *Notifier {
	n := &Notifier{log: log, used: processorTime, send: func(state string) error {
		_, err := daemon.SdNotify(false, state)
		return err
	}}
	if os.Getenv("NOTIFY_SOCKET") == "" {
		n.send = func(string) error { return nil }
		return n
	}
	var err error
	if n.watchdog, err = daemon.SdWatchdogEnabled(true); err != nil {
		log.Error("cannot ping the service manager's watchdog", "error", err)
	}
	return n
}

// tell sends one message. What cannot be sent is logged: the server works without it, until the manager's patience ends.
func (n *Notifier) tell(lines ...string) {
	if err := n.send(strings.Join(lines, "\n")); err != nil {
		n.log.Warn("could not notify the service manager", "state", lines[0], "error", err)
	}
}

// status is the line that `systemctl status` shows.
func status(text string) string { return "STATUS=" + brief.Line(text) }

// Ready says that the server takes requests.
func (n *Notifier) Ready(text string) { n.tell(daemon.SdNotifyReady, status(text)) }

// Stopping says that the server is about to end, and how long that may take.
func (n *Notifier) Stopping(within time.Duration, text string) {
	n.tell(daemon.SdNotifyStopping, extend(within), status(text))
}

func extend(by time.Duration) string { return fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", by.Microseconds()) }

// How often a start that takes long asks for more time, how much it asks for, and how much processor time it must have
// used meanwhile.
const (
	startLook     = 10 * time.Second
	startExtended = time.Minute
	startProgress = 10 * time.Millisecond
)

// Starting asks for more time, until the returned function is called, as long as the process works. So the reading of a
// large journal is not cut off and restarted, and a start that hangs is still ended.
func (n *Notifier) Starting(text string) (done func()) {
	n.tell(status(text))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	used := n.used()
	background.Go("systemd.Starting", func() {
		defer close(ended)
		for tick := time.NewTicker(startLook); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
			}
			if now := n.used(); now-used >= startProgress {
				used = now
				n.tell(extend(startExtended))
			}
		}
	})
	return func() {
		cancel()
		<-ended
	}
}

// Watch pings the service manager's watchdog until ctx ends, each time after healthy has said that the server works,
// with a line about it. When it has not for as long as the manager waits, the manager ends the server and starts
// another. If no watchdog is set, Watch returns at once.
func (n *Notifier) Watch(ctx context.Context, healthy func(context.Context) (text string, err error)) {
	if n.watchdog <= 0 {
		return
	}
	period := n.watchdog / 4 // so that two looks may fail
	tick := time.NewTicker(period)
	defer tick.Stop()
	for ctx.Err() == nil {
		look, cancel := context.WithTimeout(ctx, period)
		text, err := healthy(look)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			n.tell(daemon.SdNotifyWatchdog, status(text))
		default:
			n.log.Error("the server is not responding; the service manager will restart it unless it recovers",
				"within", n.watchdog, "error", err)
			n.tell(status("Not healthy: " + err.Error()))
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}
