package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"docent/api"
	"docent/backup"
	"docent/doctor"
	"docent/forge"
	"docent/health"
	"docent/model"
	"docent/model/remote"
	"docent/persistence/catalog"
)

// knownBackups is what a data directory says of its backups.
func knownBackups(c Config) health.Backup {
	k := backup.NewKeeper(backup.KeeperDeps{Data: c.Data, Folder: c.BackupDir, Log: slog.New(slog.DiscardHandler)})
	defer k.Close()
	return k.Status()
}

func (o *operations) catalogFindings(ctx context.Context) []doctor.Finding {
	if err := o.stores.catalog.Ping(ctx); err != nil {
		return []doctor.Finding{doctor.Wrong("start the database, and look at catalog_dsn", "it does not answer: %v", err)}
	}
	kind := "SQLite in the data directory"
	if catalogFile(catalogDSN(o.stores.dir, o.stores.config)) == "" {
		kind = "PostgreSQL"
	}
	return []doctor.Finding{doctor.Fine("%s answers", kind)}
}

// keyFindings looks for projects that nobody can use, and for keys that end soon or that nobody uses.
func (o *operations) keyFindings(ctx context.Context) []doctor.Finding {
	projects, err := o.stores.catalog.Projects(ctx)
	if err != nil {
		return []doctor.Finding{doctor.Wrong("docent catalog check", "%v", err)}
	}
	keys, err := o.stores.catalog.Keys(ctx, catalog.KeyQuery{})
	if err != nil {
		return []doctor.Finding{doctor.Wrong("docent catalog check", "%v", err)}
	}
	if len(projects) == 0 {
		return []doctor.Finding{doctor.Doubt("docent project add docs --domain docs.example.com --source PATH-or-URL", "there is no project yet")}
	}
	return judgeKeys(projects, keys, time.Now())
}

func judgeKeys(projects []api.Project, keys []api.Key, now time.Time) (found []doctor.Finding) {
	for _, p := range projects {
		active := 0
		for _, k := range keys {
			if k.Project != p.ID || keyState(k, now) != "active" {
				continue
			}
			if k.Kind == api.AssistantKey {
				active++
			}
			switch {
			case k.ExpiresAt != nil && k.ExpiresAt.Sub(now) < 14*24*time.Hour:
				found = append(found, doctor.Doubt(fmt.Sprintf("docent key create --project %s --kind %s", p.ID, k.Kind),
					"the %s key %s (%s) ends on %s", k.Kind, k.ID, k.Hint, k.ExpiresAt.UTC().Format(time.DateOnly)).Of(string(p.ID)))
			case k.LastUsed == nil && now.Sub(k.CreatedAt) > 30*24*time.Hour:
				found = append(found, doctor.Doubt("docent key revoke "+string(k.ID), "the %s key %s (%s) was made on %s and never used",
					k.Kind, k.ID, k.Hint, k.CreatedAt.UTC().Format(time.DateOnly)).Of(string(p.ID)))
			}
		}
		if active == 0 && !p.Options.Public {
			found = append(found, doctor.Doubt(fmt.Sprintf("docent key create --project %s --kind assistant", p.ID), "no assistant key is active: readers cannot ask").Of(string(p.ID)))
		}
	}
	if len(found) == 0 {
		found = append(found, doctor.Fine("each of the %d projects has an active one", len(projects)))
	}
	return found
}

// sourceFindings looks for sources that are not read, or whose last reading failed.
func (o *operations) sourceFindings(ctx context.Context) (found []doctor.Finding) {
	projects, err := o.stores.catalog.Projects(ctx)
	if err != nil {
		return []doctor.Finding{doctor.Wrong("docent catalog check", "%v", err)}
	}
	for _, reason := range o.stores.source.LeftOut() {
		found = append(found, doctor.Wrong("docent index PROJECT reads it again", "%s", reason))
	}
	n := 0
	for _, p := range projects {
		sources, err := o.stores.source.Sources(ctx, p.ID)
		if err != nil {
			found = append(found, doctor.Wrong("docent project check "+string(p.ID), "%v", err).Of(string(p.ID)))
			continue
		}
		for _, s := range sources {
			n++
			about := string(p.ID)
			if !s.First {
				about += "/" + s.Label
			}
			failed := s.Error
			if s.Collection != nil && s.Collection.Error != "" {
				failed = s.Collection.Error
			}
			switch {
			case failed != "":
				found = append(found, doctor.Wrong("docent index "+string(p.ID)+" reads it again and says more", "the last reading failed: %s; what was read before still answers", failed).Of(about))
			case s.Pages == 0:
				found = append(found, doctor.Wrong("docent project check "+string(p.ID), "it has no public page: no question can be answered").Of(about))
			case s.Collection != nil && !s.Next.IsZero() && time.Since(s.Next) > time.Hour:
				found = append(found, doctor.Doubt("docent index "+string(p.ID), "it was to be read again at %s and was not", shownTime(s.Next)).Of(about))
			}
		}
	}
	if len(found) == 0 {
		found = append(found, doctor.Fine("all %d are read, with public pages", n))
	}
	return found
}

// hostFindings asks the code host of each project what its credentials may do, as `project add` does.
func (o *operations) hostFindings(ctx context.Context) []doctor.Finding {
	projects, err := o.stores.catalog.Projects(ctx)
	if err != nil {
		return []doctor.Finding{doctor.Wrong("docent catalog check", "%v", err)}
	}
	projects = slices.DeleteFunc(projects, func(p api.Project) bool { return p.Host == api.HostBuiltin || p.Kind.Collected() })
	if len(projects) == 0 {
		return []doctor.Finding{doctor.Left("every project is on the built-in one")}
	}
	return together(projects, func(p api.Project) doctor.Finding {
		return o.hostFinding(ctx, p).Of(string(p.ID))
	})
}

// together makes a finding of each, all at the same time.
func together[T any](list []T, f func(T) doctor.Finding) []doctor.Finding {
	found := make([]doctor.Finding, len(list))
	var all sync.WaitGroup
	for i, one := range list {
		all.Go(func() { found[i] = f(one) })
	}
	all.Wait()
	return found
}

func (o *operations) hostFinding(ctx context.Context, p api.Project) doctor.Finding {
	open, err := o.stores.hub.Rights(ctx, p)
	switch {
	case errors.Is(err, forge.ErrMisconfigured):
		return doctor.Wrong("docent project token "+string(p.ID)+" stores another token; docs/deploy/code-hosts says which rights it needs", "%v", err)
	case err != nil:
		return doctor.Doubt("look whether this machine reaches the host: curl -v its address", "%v", err)
	case open != "":
		return doctor.Fine("%s may be written to. %s", p.Repository, open)
	}
	return doctor.Fine("%s: branches and pull requests may be made", p.Repository)
}

// modelFindings asks each language model one short question.
func (c Config) modelFindings(ctx context.Context) []doctor.Finding {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		if p := c.Models[name].Provider; p == model.OpenAI || p == model.Anthropic {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return []doctor.Finding{doctor.Fine("the built-in one answers; no language model is configured")}
	}
	return together(names, func(name string) doctor.Finding { return c.modelFinding(ctx, name).Of(name) })
}

// A timedTransport says when the first byte of an answer came, and whether it came as a stream.
type timedTransport struct {
	mu     sync.Mutex
	first  time.Duration
	stream bool
}

func (t *timedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	began := time.Now()
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.stream = strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	t.first = 0
	t.mu.Unlock()
	resp.Body = &timedBody{ReadCloser: resp.Body, first: func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.first == 0 {
			t.first = time.Since(began)
		}
	}}
	return resp, nil
}

type timedBody struct {
	io.ReadCloser
	first func()
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.first()
	}
	return n, err
}

// modelTrial is what a model is asked.
func modelTrial() model.Chat {
	return model.Chat{System: "You are being tested. Call the tool `ready` once, with no arguments, and say nothing.",
		Turns:     []model.Turn{{Role: "user", Text: "Are you ready? Call the tool."}},
		Tools:     []model.Tool{{Name: "ready", Description: "Says that you are ready.", Schema: json.RawMessage(`{"type":"object","properties":{}}`)}},
		MaxTokens: 256, Key: "docent-doctor-" + api.NewID("", time.Now()), Once: true}
}

func (c Config) modelFinding(ctx context.Context, name string) doctor.Finding {
	m := c.Models[name]
	timed := new(timedTransport)
	var set remote.Set
	asked, err := set.Add(name, m.Provider, remote.Config{BaseURL: m.BaseURL, Model: m.Model, Key: m.key.Value, Whole: m.Whole,
		Attempts: 1, MaxTokens: m.MaxTokens, Window: m.Window, Total: 30 * time.Second, Idle: 30 * time.Second, Transport: timed})
	if err != nil {
		return doctor.Wrong("docent config check", "%v", err)
	}
	reply, err := asked.Chat(ctx, modelTrial())
	if err != nil {
		return c.modelFailure(ctx, m, err)
	}
	speed := fmt.Sprintf("%s answers; the first of it came after %s", m.Model, timed.first.Round(time.Millisecond))
	switch {
	case len(reply.Calls) == 0:
		return doctor.Doubt("choose a model that calls tools for jobs; a server that streams no calls needs whole = true in [models."+name+"]",
			"%s, and it called no tool: it can answer readers, and not edit pages", speed)
	case timed.first > 10*time.Second:
		return doctor.Doubt("choose a faster model or endpoint: fallback_after has the built-in model answer meanwhile", "%s", speed)
	case !timed.stream && !m.Whole:
		return doctor.Doubt("look for the endpoint's setting for streams, or set whole = true in [models."+name+"]", "%s, in one piece: readers wait until an answer is whole", speed)
	}
	return doctor.Fine("%s, and it calls tools", speed)
}

// modelFailure says why a model could not be asked.
func (c Config) modelFailure(ctx context.Context, m ModelConfig, err error) doctor.Finding {
	var later *model.Unavailable
	if errors.As(err, &later) && later.Err != nil {
		err = later.Err
	}
	var f *remote.Failure
	if !errors.As(err, &f) {
		return doctor.Wrong("", "%v", err)
	}
	key := "DOCENT_MODEL_API_KEY"
	if m.KeyEnv != "" {
		key = m.KeyEnv
	}
	switch {
	case f.Status == http.StatusUnauthorized || f.Status == http.StatusForbidden:
		return doctor.Wrong("put a key that is valid into "+key+" where the server starts, and restart it", "%v", err)
	case f.Spent():
		return doctor.Wrong("pay the provider's bill, or raise its limit", "%v", err)
	case f.Status == http.StatusNotFound || f.Status == http.StatusBadRequest:
		if names := modelNames(ctx, m); len(names) > 0 && !slices.Contains(names, m.Model) {
			meant := near(m.Model, names)
			if len(meant) == 0 {
				meant = names
			}
			return doctor.Wrong(fmt.Sprintf("model = %q in the configuration", meant[0]), "the endpoint has no model %q; it has %s", m.Model, strings.Join(names[:min(len(names), 8)], ", "))
		}
		return doctor.Wrong("look at model and base_url: an OpenAI-compatible address usually ends in /v1", "%v", err)
	case f.Status == 0:
		return doctor.Wrong("start the model's server, or correct base_url: curl "+strings.TrimRight(m.BaseURL, "/")+"/models", "%v", err)
	}
	return doctor.Wrong("", "%v", err)
}

// modelNames are the models that an endpoint lists; none where it does not.
func modelNames(ctx context.Context, m ModelConfig) (names []string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(m.BaseURL, "/")+"/models", nil)
	if err != nil || m.BaseURL == "" {
		return nil
	}
	if m.key.Value() != "" {
		req.Header.Set("Authorization", "Bearer "+m.key.Value())
	}
	resp, err := quickClient.Do(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if resp.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&list) != nil {
		return nil
	}
	for _, one := range list.Data {
		names = append(names, one.ID)
	}
	slices.Sort(names)
	return names
}

func (c Config) embeddingFindings(ctx context.Context) []doctor.Finding {
	e := c.Embeddings
	if e.Model == "" {
		return []doctor.Finding{doctor.Left("none are configured: searches go by words alone")}
	}
	var set remote.Set
	asked, err := set.Embedder("embeddings", remote.EmbedderConfig{BaseURL: e.BaseURL, Model: e.Model, Key: e.key.Value,
		Dimensions: e.Dimensions, Attempts: 1, Total: 20 * time.Second, QuestionLimit: 20 * time.Second})
	if err != nil {
		return []doctor.Finding{doctor.Wrong("docent config check", "%v", err)}
	}
	began := time.Now()
	vector, err := asked.Question(ctx, "How do I begin?")
	took := time.Since(began).Round(time.Millisecond)
	switch {
	case err != nil:
		m := ModelConfig{BaseURL: e.BaseURL, Model: e.Model, KeyEnv: e.KeyEnv, key: e.key}
		return []doctor.Finding{c.modelFailure(ctx, m, err)}
	case took > e.QuestionLimit.Duration:
		return []doctor.Finding{doctor.Doubt(`use a faster endpoint, or raise question_timeout in [embeddings]`,
			"a vector of %d numbers came after %s, and readers wait for %s: questions are searched by words alone", len(vector), took, e.QuestionLimit)}
	}
	return []doctor.Finding{doctor.Fine("%s gives vectors of %d numbers, within %s", e.Model, len(vector), took)}
}
