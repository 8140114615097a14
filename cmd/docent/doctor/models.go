package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"docent/api"
	"docent/cmd/docent/config"
	"docent/model"
	"docent/model/remote"
)

// modelFindings asks each language model one short question: those of the configuration and those that were connected in
// the console, unless one of the configuration takes their place.
func modelFindings(ctx context.Context, c config.Config, connected []api.LanguageModel, key func(string) (string, error)) []Finding {
	asks := make(map[string]func() Finding)
	for name, m := range c.Models {
		if m.Provider == model.OpenAI || m.Provider == model.Anthropic {
			asks[name] = func() Finding { return AskModel(ctx, name, m) }
		}
	}
	for _, l := range connected {
		if _, taken := c.Models[l.Name]; !taken && !l.Embeds {
			asks[l.Name] = func() Finding { return AskConnected(ctx, l, key) }
		}
	}
	if len(asks) == 0 {
		return []Finding{Fine("the built-in one answers; no language model is connected")}
	}
	return together(slices.Sorted(maps.Keys(asks)), func(name string) Finding { return asks[name]().Of(name) })
}

// AskConnected asks a model that was connected in the console one short question, or for one vector. What the doctor would
// have done in the configuration is done in its form.
func AskConnected(ctx context.Context, l api.LanguageModel, key func(file string) (string, error)) Finding {
	m, err := config.Connected(l, key)
	if err != nil {
		return Wrong("console, Models, "+l.Name+": enter its key again", "its stored key is not there")
	}
	var f Finding
	if l.Embeds {
		f = AskEmbeddings(ctx, config.ConnectedEmbeddings(l, m))
	} else {
		f = AskModel(ctx, l.Name, m)
	}
	form := strings.NewReplacer("in [models."+l.Name+"]", "in its form", "in [embeddings]", "in its form",
		"in the configuration", "in its form")
	f.Found, f.Fix = form.Replace(f.Found), form.Replace(f.Fix)
	if strings.Contains(f.Fix, "in the server's environment") {
		f.Fix = "enter a valid key"
	}
	if f.Fix != "" {
		f.Fix = "console, Models, " + l.Name + ": " + f.Fix
	}
	return f
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

// AskModel asks a language model one short question, which a tool answers.
func AskModel(ctx context.Context, name string, m config.Model) Finding {
	timed := new(timedTransport)
	var set remote.Set
	asked, err := set.Add(name, m.Provider, remote.Config{BaseURL: m.BaseURL, Model: m.Model, Key: m.Key.Value, API: m.API,
		Effort: m.Effort, ExtraBody: m.ExtraBody, ExtraHeaders: m.ExtraHeaders, Whole: m.Whole, Attempts: 1,
		Price:     remote.Price{Prompt: m.PromptPrice, Cached: m.CachedPrice, Completion: m.CompletionPrice},
		MaxTokens: m.MaxTokens, Window: m.Window, Total: 30 * time.Second, Idle: 30 * time.Second, Transport: timed})
	if err != nil {
		return Wrong("docent doctor --offline", "%v", err)
	}
	began := time.Now()
	reply, err := asked.Chat(ctx, modelTrial())
	if err != nil {
		return modelFailure(ctx, m, err)
	}
	used := fmt.Sprintf("%d tokens", reply.Usage.PromptTokens+reply.Usage.CompletionTokens)
	if asked.Priced() {
		used += fmt.Sprintf(", $%.4f", float64(reply.Usage.Cost)/1e6)
	}
	speed := fmt.Sprintf("%s answered in %s, its first part after %s (%s)", m.Model, time.Since(began).Round(time.Millisecond),
		timed.first.Round(time.Millisecond), used)
	switch {
	case len(reply.Calls) == 0:
		return Doubt("choose a model that calls tools for jobs; a server that streams no calls needs whole = true in [models."+name+"]",
			"%s and called no tool: it can answer readers, but not edit pages", speed)
	case timed.first > 10*time.Second:
		return Doubt("choose a faster model or endpoint: fallback_after has the built-in model answer meanwhile", "%s", speed)
	case !timed.stream && !m.Whole:
		return Doubt("look for the endpoint's setting for streams, or set whole = true in [models."+name+"]", "%s, in one piece: readers wait until an answer is complete", speed)
	}
	if manners := asked.Manners(); manners != "" {
		speed += " (" + manners + ")"
	}
	if !asked.Priced() {
		return Fine("%s and called a tool. No price is known for it, so agent_cost and answer_cost don't apply to it; agent_tokens and answer_tokens do. "+
			"To limit its cost, set prompt_price and completion_price in [models.%s]", speed, name)
	}
	return Fine("%s and called a tool", speed)
}

// modelFailure says why a model could not be asked.
func modelFailure(ctx context.Context, m config.Model, err error) Finding {
	if later, ok := errors.AsType[*model.Unavailable](err); ok && later.Err != nil {
		err = later.Err
	}
	var f *remote.Failure
	if !errors.As(err, &f) {
		return Wrong("", "%v", err)
	}
	key := "DOCENT_MODEL_API_KEY"
	if m.KeyEnv != "" {
		key = m.KeyEnv
	}
	switch {
	case f.Status == http.StatusUnauthorized || f.Status == http.StatusForbidden:
		return Wrong("put a valid key into "+key+" in the server's environment, and restart it", "%v", err)
	case f.Spent():
		return Wrong("pay the provider's bill, or raise its limit", "%v", err)
	case f.Status == http.StatusNotFound || f.Status == http.StatusBadRequest:
		names, _ := remote.Names(ctx, m.Provider, remote.Config{BaseURL: m.BaseURL, Key: m.Key.Value, ExtraHeaders: m.ExtraHeaders})
		if len(names) > 0 && !slices.Contains(names, m.Model) {
			meant := config.Near(m.Model, names)
			if len(meant) == 0 {
				meant = names
			}
			return Wrong(fmt.Sprintf("model = %q in the configuration", meant[0]), "the endpoint has no model %q; it has %s", m.Model, strings.Join(names[:min(len(names), 8)], ", "))
		}
		return Wrong("look at model and base_url: an OpenAI-compatible address usually ends in /v1", "%v", err)
	case f.Status == 0:
		return Wrong("start the model's server, or correct base_url: curl "+strings.TrimRight(m.BaseURL, "/")+"/models", "%v", err)
	}
	return Wrong("", "%v", err)
}

func embeddingFindings(ctx context.Context, c config.Config, connected []api.LanguageModel, key func(string) (string, error)) []Finding {
	if c.Embeddings.Model != "" {
		return []Finding{AskEmbeddings(ctx, c.Embeddings)}
	}
	for _, l := range connected {
		if l.Embeds {
			return []Finding{AskConnected(ctx, l, key)}
		}
	}
	return []Finding{Left("none are connected: searches go by words alone")}
}

// AskEmbeddings asks an endpoint of embeddings for one vector.
func AskEmbeddings(ctx context.Context, e config.Embeddings) Finding {
	var set remote.Set
	asked, err := set.Embedder("embeddings", remote.EmbedderConfig{BaseURL: e.BaseURL, Model: e.Model, Key: e.Key.Value,
		Dimensions: e.Dimensions, Attempts: 1, Total: 20 * time.Second, QuestionLimit: 20 * time.Second})
	if err != nil {
		return Wrong("docent doctor --offline", "%v", err)
	}
	began := time.Now()
	vector, err := asked.Question(ctx, "How do I begin?")
	took := time.Since(began).Round(time.Millisecond)
	switch {
	case err != nil:
		m := config.Model{Provider: model.OpenAI, BaseURL: e.BaseURL, Model: e.Model, KeyEnv: e.KeyEnv, Key: e.Key}
		return modelFailure(ctx, m, err)
	case took > e.QuestionLimit.Duration:
		return Doubt(`use a faster endpoint, or raise question_timeout in [embeddings]`,
			"a vector of %d numbers came after %s, and readers wait for %s: questions are searched by words alone", len(vector), took, e.QuestionLimit)
	}
	return Fine("%s gives vectors of %d numbers, within %s", e.Model, len(vector), took)
}
