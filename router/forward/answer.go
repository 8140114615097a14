package forward

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"time"

	"docent/persistence/cluster"
)

// An answer is what a handler writes here. It is dropped if, at its first byte, the request is known to belong to
// another node.
type answer struct {
	http.ResponseWriter
	slot  *cluster.Slot
	body  *kept
	state answerState
}

type answerState uint8

const (
	undecided answerState = iota
	written
	dropped
)

// passes decides, once, whether what is written goes to the client.
func (a *answer) passes() bool {
	if a.state == undecided {
		if a.slot.Elsewhere() != nil {
			a.state = dropped
		} else {
			a.state = written
			a.body.free()
		}
	}
	return a.state == written
}

func (a *answer) WriteHeader(status int) {
	if status < 200 && status != http.StatusSwitchingProtocols || a.passes() {
		a.ResponseWriter.WriteHeader(status)
	}
}

func (a *answer) Write(b []byte) (int, error) {
	if !a.passes() {
		return len(b), nil
	}
	return a.ResponseWriter.Write(b)
}

// FlushError is what http.ResponseController looks for.
func (a *answer) FlushError() error {
	if !a.passes() {
		return nil
	}
	return http.NewResponseController(a.ResponseWriter).Flush()
}

var errElsewhere = errors.New("the request belongs to another node")

// Hijack lets package sockets have the connection.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if !a.passes() {
		return nil, nil, errElsewhere
	}
	return http.NewResponseController(a.ResponseWriter).Hijack()
}

func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// A relay writes another node's answer to the client, which has to take it in.
type relay struct {
	http.ResponseWriter
	rc       *http.ResponseController
	patience time.Duration
	deadline time.Time
}

func (r *relay) Write(b []byte) (int, error) {
	if now := time.Now(); r.deadline.Sub(now) < r.patience {
		r.deadline = now.Add(r.patience + r.patience/4)
		_ = r.rc.SetWriteDeadline(r.deadline) // if it can
	}
	return r.ResponseWriter.Write(b)
}

func (r *relay) Unwrap() http.ResponseWriter { return r.ResponseWriter }
