package database

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/stdlib"

	"docent/api"
	"docent/internal/backoff"
)

const (
	// outageWait is for how long of an outage requests wait for the database. Later ones are refused at once, so that no
	// queue grows before a database that is gone.
	outageWait = 10 * time.Second
	outagePace = 100 * time.Millisecond
)

// A patientConnector makes connections that outlast a restart of the database, and its failing over: what is asked
// meanwhile waits, and what was asked when a connection broke is asked again over another one, if that is safe.
type patientConnector struct {
	driver.Connector

	mu    sync.Mutex
	since time.Time // when the database could not be reached any more; zero while it can
}

func (s *patientConnector) Connect(ctx context.Context) (driver.Conn, error) {
	for {
		conn, err := s.Connector.Connect(ctx)
		if err == nil {
			s.reached()
			if pg, ok := conn.(*stdlib.Conn); ok {
				return patientConn{pg}, nil
			}
			return conn, nil
		}
		// Who waits no longer says nothing about the database.
		if !passes(err) || errors.Is(err, api.ErrUnavailable) || ctx.Err() != nil || !s.waits() ||
			backoff.Sleep(ctx, outagePace) != nil {
			return nil, err
		}
	}
}

func (s *patientConnector) reached() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = time.Time{}
}

// waits notes that the database cannot be reached, and reports whether it is waited for.
func (s *patientConnector) waits() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() {
		s.since = time.Now()
	}
	return time.Since(s.since) < outageWait
}

// A patientConn has package sql ask again, over another connection, what changes nothing and was lost with this one.
type patientConn struct{ *stdlib.Conn }

// QueryContext is stdlib.Conn's. In a transaction what came before would be missing over another connection.
func (c patientConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	alone := c.Conn.Conn().PgConn().TxStatus() == 'I'
	rows, err := c.Conn.QueryContext(ctx, query, args)
	if alone && strings.HasPrefix(query, "SELECT ") && c.lost(ctx, err) {
		return nil, driver.ErrBadConn
	}
	return rows, err
}

// BeginTx is stdlib.Conn's.
func (c patientConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.BeginTx(ctx, opts)
	if c.lost(ctx, err) {
		return nil, driver.ErrBadConn
	}
	return tx, err
}

// lost reports whether the connection is what failed.
func (c patientConn) lost(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && c.Conn.Conn().IsClosed() &&
		(passes(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF))
}
