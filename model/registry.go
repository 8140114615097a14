package model

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"docent/api"
)

// Providers of a model.
const (
	Builtin   = "builtin"   // the documentation's own sentences; needs nothing
	OpenAI    = "openai"    // any endpoint that speaks OpenAI's chat completions
	Anthropic = "anthropic" // Anthropic's messages
	Scripted  = "scripted"  // a fixed text at a fixed pace, for tests and load benches
)

// A Config lists the models that answers may be asked of. The built-in one is always there, under its own name, unless
// another model took that name.
type Config struct {
	Models  []Named
	Default string // name of the model that answers when none is named; "builtin" where empty
	// Aliases are other names of models. One of an empty name stands for whichever model is used where none is named; a
	// model of the alias's own name goes before it.
	Aliases map[string]string
}

// A Named is one configured model.
type Named struct {
	Name     string
	Provider string
	BaseURL  string // of an HTTP provider; its public address where empty
	Model    string // the provider's name of it
	Key      string // the secret itself; never shown

	MaxTokens int           // of an answer; 1024 where zero
	Window    int           // tokens of prompt and answer together; 16000 where zero
	Price     Price         // nothing is reckoned where zero
	Whole     bool          // ask for answers in one piece: for servers that do not stream calls of tools (openai only)
	Searches  int           // of the model's own for one answer; 3 where zero, none where negative
	Idle      time.Duration // longest silence of the provider; a minute where zero
	Total     time.Duration // longest answer; five minutes where zero
	Attempts  int           // tries until the first piece of an answer came; 3 where zero
	Backoff   time.Duration // first wait between two tries, where the provider names none; half a second where zero

	NoFallback    bool          // the built-in model does not answer in its place
	FallbackAfter time.Duration // of silence before an answer begins, the built-in model does; 30 seconds where zero, Idle at most

	Script    Script            // of the scripted provider
	Transport http.RoundTripper // how an HTTP provider is reached; a shared one with sound limits where nil
}

// A provider writes one answer.
type provider interface {
	answer(ctx context.Context, req Request, emit func(Delta) error) (Result, error)
}

// A talker is a provider that can hold a conversation with tools.
type talker interface {
	chat(ctx context.Context, c Chat) (Reply, error)
	window() int // 0 where it cannot as it is configured
}

// A Registry holds the configured models.
type Registry struct {
	models    map[string]provider
	aliases   map[string]string
	names     []string
	standard  string
	fallbacks map[string]*atomic.Int64 // answers that the built-in model gave in place of others, by the others' names
}

// New checks the configuration and makes its models. Nothing is reached over the network yet.
func New(c Config) (*Registry, error) {
	r := &Registry{models: map[string]provider{}, aliases: c.Aliases, standard: c.Default, fallbacks: map[string]*atomic.Int64{"": new(atomic.Int64)}}
	endpoints := breakers{}
	var problems []error
	for i, n := range c.Models {
		if n.Name == "" {
			problems = append(problems, fmt.Errorf("model %d has no name", i+1))
			continue
		}
		if _, taken := r.models[n.Name]; taken {
			problems = append(problems, fmt.Errorf("model %s is there twice", n.Name))
			continue
		}
		p, err := n.provider(endpoints)
		if err != nil {
			problems = append(problems, fmt.Errorf("model %s: %w", n.Name, err))
			continue
		}
		r.models[n.Name] = p
		r.names = append(r.names, n.Name)
		r.fallbacks[n.Name] = new(atomic.Int64)
	}
	if _, taken := r.models[Builtin]; !taken {
		r.models[Builtin] = extractive{name: Builtin}
		r.names = append(r.names, Builtin)
	}
	slices.Sort(r.names)
	if r.standard == "" {
		r.standard = Builtin
	}
	if _, ok := r.models[r.standard]; !ok && len(problems) == 0 {
		problems = append(problems, fmt.Errorf("the default model %q is none of %s", r.standard, strings.Join(r.names, ", ")))
	}
	for alias, name := range r.aliases {
		if _, ok := r.models[name]; !ok && name != "" && len(problems) == 0 {
			problems = append(problems, fmt.Errorf("the alias %q stands for %q, which is none of %s", alias, name, strings.Join(r.names, ", ")))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return r, nil
}

func (n Named) provider(endpoints breakers) (provider, error) {
	switch n.Provider {
	case Builtin:
		return extractive{name: n.Name}, nil
	case Scripted:
		return newScripted(n)
	case OpenAI, Anthropic:
		return newRemote(n, endpoints)
	case "":
		return nil, fmt.Errorf("no provider is given; there are %s, %s, %s and %s", Builtin, OpenAI, Anthropic, Scripted)
	}
	return nil, fmt.Errorf("provider %q is unknown; there are %s, %s, %s and %s", n.Provider, Builtin, OpenAI, Anthropic, Scripted)
}

// Names are the models that can be asked for, sorted.
func (r *Registry) Names() []string { return slices.Clone(r.names) }

// Default is the name of the model that answers when none is named.
func (r *Registry) Default() string { return r.standard }

// Check says whether a model of that name can be asked; the empty name stands for the default.
func (r *Registry) Check(name string) error {
	_, err := r.find(name)
	return err
}

// Resolve is the configured model that a caller means by a name: the one behind an alias, and nothing where that stands
// for whichever is used when none is named. An unknown name is an api.InvalidError.
func (r *Registry) Resolve(name string) (string, error) {
	if _, err := r.find(name); err != nil {
		return "", err
	}
	if _, own := r.models[name]; own {
		return name, nil
	}
	return r.aliases[name], nil
}

// Name is the configured name of the model that a name stands for: an alias's own model, and the default for the empty name.
func (r *Registry) Name(name string) string {
	if _, own := r.models[name]; own {
		return name
	}
	if alias, is := r.aliases[name]; is {
		name = alias
	}
	return or(name, r.standard)
}

// Answer lets the named model answer, in pieces; the empty name stands for the default. Emit is called for one piece
// after the other, not always from the caller's goroutine, and does not wait. An error of it ends the
// answer and comes back as it is. An unknown name is an api.InvalidError, so a scripted model answers only where
// somebody wrote its name down: in the request's project or as the configured default.
func (r *Registry) Answer(ctx context.Context, name string, req Request, emit func(Delta) error) (Result, error) {
	p, err := r.find(name)
	if err != nil {
		return Result{}, err
	}
	return p.answer(ctx, req, emit)
}

// Chat holds a conversation with the named model; the empty name stands for the default. Text and calls come back when
// the answer is complete; a try of which only a part came is made again. Arguments of calls are what the model wrote,
// and so is an answer of no words and no calls, which some models give.
//
// An error is ErrTooLong or ErrRefused where these say it, an *Unavailable where the model may be asked later, and a
// *Failure otherwise. A name whose model holds no conversations is an api.InvalidError.
func (r *Registry) Chat(ctx context.Context, name string, c Chat) (Reply, error) {
	p, err := r.find(name)
	if err != nil {
		return Reply{}, err
	}
	t, ok := p.(talker)
	if !ok || t.window() == 0 {
		return Reply{}, &api.InvalidError{Problems: []api.Problem{{Field: "model", Message: fmt.Sprintf("model %q holds no conversations", or(name, r.standard))}}}
	}
	return t.chat(ctx, c)
}

// Local is whether the processors of this machine make the named model's answers. A scripted model only waits.
func (r *Registry) Local(name string) bool {
	p, err := r.find(name)
	_, local := p.(extractive)
	return err == nil && local
}

// Window is how many tokens a conversation with the named model and its reply may have together. It is 0 for one that
// holds no conversations, as the built-in one.
func (r *Registry) Window(name string) (int, error) {
	p, err := r.find(name)
	if err != nil {
		return 0, err
	}
	if t, ok := p.(talker); ok {
		return t.window(), nil
	}
	return 0, nil
}

func (r *Registry) find(name string) (provider, error) {
	p, ok := r.models[name]
	if alias, is := r.aliases[name]; is && !ok {
		p, ok = r.models[or(alias, r.standard)]
	}
	if name == "" {
		p, ok = r.models[r.standard]
	}
	if !ok {
		return nil, &api.InvalidError{Problems: []api.Problem{{
			Field: "model", Message: fmt.Sprintf("no model is named %q; there are %s", name, strings.Join(r.names, ", ")),
		}}}
	}
	return p, nil
}
