package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"docent/api"
	"docent/cmd/docent/config"
	"docent/cmd/docent/operator"
	"docent/docs"
	"docent/internal/background"
	"docent/persistence/datadir"
	"docent/web/manual"
)

// manualIdle is how long the assistant of Docent's own documentation stays in memory after the last question.
const manualIdle = 30 * time.Minute

// manualLimits bound what strangers may ask about Docent, so that it takes little from readers of projects.
var manualLimits = api.Limits{KeyMonth: -1, OrgHour: 1000, IPDay: 500}

// A manualAssistant answers questions about Docent from its own documentation, with the built-in model. It is a server
// within the server, with a data directory of its own: nothing of it is among the projects. It is made at the first
// question, and goes when nobody has asked for long.
type manualAssistant struct {
	app *Server

	mu      sync.Mutex
	closed  bool
	running *Server // nil while nobody asks
	key     string
	end     func() error
	asking  int // requests that are being answered
	idle    *time.Timer
}

// serve answers what the widget on the pages of the documentation sends.
func (m *manualAssistant) serve(w http.ResponseWriter, req *http.Request) error {
	switch {
	case strings.HasPrefix(req.URL.Path, "/widget/settings/"):
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte("{}")) // a page alone makes no assistant
		return nil
	case !strings.HasPrefix(req.URL.Path, "/discovery/"):
		return api.Missing("operation")
	}
	edge, key, err := m.begin()
	if err != nil {
		return fmt.Errorf("start the documentation's assistant: %w", err)
	}
	defer m.done()
	req.Header.Set("Authorization", "Bearer "+key)
	edge.ServeHTTP(w, req)
	return nil
}

// begin returns what answers, and makes it if need be. done must follow.
func (m *manualAssistant) begin() (http.Handler, string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, "", errors.New("the server stops")
	}
	if m.idle != nil {
		m.idle.Stop()
	}
	if m.running == nil {
		if err := m.open(m.app.work); err != nil {
			return nil, "", err
		}
	}
	m.asking++
	return m.running.Edge, m.key, nil
}

func (m *manualAssistant) open(ctx context.Context) error {
	folder := m.app.dir.File(datadir.Manual)
	source := filepath.Join(folder, "docs")
	if err := errors.Join(os.RemoveAll(folder), os.CopyFS(source, docs.Files)); err != nil {
		return fmt.Errorf("write the documentation: %w", err)
	}
	c := manualConfig(m.app.config)
	c.Data = filepath.Join(folder, "data")
	log := slog.New(slog.NewTextHandler(slog.NewLogLogger(m.app.Log.Handler(), slog.LevelWarn).Writer(),
		&slog.HandlerOptions{Level: slog.LevelWarn}))
	a, project, end, err := temporary(ctx, c, folder, manualProject(c, source), log)
	if err != nil {
		return err
	}
	key, err := a.Operator.CreateKey(ctx, operator.KeyParams{Project: project.ID, Kind: api.AssistantKey, Name: "manual"})
	if err != nil {
		return errors.Join(err, end())
	}
	m.running, m.key, m.end = a, key.Key, end
	return nil
}

// manualProject is the documentation in a folder. Its site, which is this server's own, is not read: who asks has the server
// connect to nothing.
func manualProject(c config.Config, source string) api.Project {
	return api.Project{ID: "docs", Name: "Docent", Source: source, SiteURL: c.PublicURL + manual.Root, AnswersFrom: api.FromSourceOnly}
}

// manualConfig is how the assistant runs within a server: who asks is told as the server tells it.
func manualConfig(of config.Config) config.Config {
	c := config.Default()
	c.PublicURL, c.Now, c.TrustedProxies, c.Unlimited, c.Limits = of.PublicURL, of.Now, of.TrustedProxies, of.Unlimited, manualLimits
	c.MaxStreams, c.MaxTurns, c.MaxOpenIndexes, c.StreamWriter = 64, 4, 1, config.WriterHandler
	return c
}

func (m *manualAssistant) done() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.asking--; m.asking == 0 && !m.closed {
		m.idle = time.AfterFunc(manualIdle, func() { background.Go("cmd/docent/server.manual", m.rest) })
	}
}

// rest closes what answers, unless somebody has asked meanwhile.
func (m *manualAssistant) rest() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.asking > 0 || m.running == nil {
		return
	}
	if err := m.end(); err != nil {
		m.app.Log.Warn("the documentation's assistant did not stop cleanly", "error", err)
	}
	m.running = nil
}

// close ends it: nothing is answered afterwards.
func (m *manualAssistant) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	if m.idle != nil {
		m.idle.Stop()
	}
	if m.running == nil {
		return nil
	}
	m.running = nil
	return m.end()
}
