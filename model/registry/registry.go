// Package registry binds the models: it knows each by its names, answers in the place of one that fails, and counts
// what they are used for.
package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"docent/api"
	"docent/model"
	"docent/model/builtin"
	"docent/model/remote"
	"docent/model/scripted"
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
	Provider string          // model.Builtin, model.OpenAI, model.Anthropic or model.Scripted
	Remote   remote.Config   // of a provider that is reached over HTTP
	Script   scripted.Script // of the scripted provider
}

// A provider writes one answer.
type provider interface {
	Answer(ctx context.Context, req model.Request, emit func(model.Delta) error) (model.Result, error)
}

// A talker is a provider that can hold a conversation with tools.
type talker interface {
	Chat(ctx context.Context, c model.Chat) (model.Reply, error)
	Window() int // 0 where it cannot as it is configured
}

// A Registry holds the configured models.
type Registry struct {
	models    map[string]provider
	remotes   remote.Set // those of models that are reached over HTTP
	aliases   map[string]string
	names     []string
	standard  string
	fallbacks map[string]*atomic.Int64 // answers that the built-in model gave in place of others, by the others' names
}

// New checks the configuration and makes its models. Nothing is reached over the network yet.
func New(c Config) (*Registry, error) {
	r := &Registry{models: map[string]provider{}, aliases: c.Aliases, standard: cmp.Or(c.Default, model.Builtin)}
	r.fallbacks = map[string]*atomic.Int64{"": new(atomic.Int64)}
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
		p, err := r.open(n)
		if err != nil {
			problems = append(problems, fmt.Errorf("model %s: %w", n.Name, err))
			continue
		}
		r.models[n.Name] = p
		r.names = append(r.names, n.Name)
		r.fallbacks[n.Name] = new(atomic.Int64)
	}
	if _, taken := r.models[model.Builtin]; !taken {
		r.models[model.Builtin] = builtin.New(model.Builtin)
		r.names = append(r.names, model.Builtin)
	}
	slices.Sort(r.names)
	if _, ok := r.models[r.standard]; !ok && len(problems) == 0 {
		problems = append(problems, fmt.Errorf("the default model %q is none of %s", r.standard, strings.Join(r.names, ", ")))
	}
	for alias, name := range r.aliases {
		if _, ok := r.models[name]; !ok && name != "" && len(problems) == 0 {
			problems = append(problems, fmt.Errorf("the alias %q stands for %q, which is none of %s",
				alias, name, strings.Join(r.names, ", ")))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return r, nil
}

const providers = model.Builtin + ", " + model.OpenAI + ", " + model.Anthropic + " and " + model.Scripted

func (r *Registry) open(n Named) (provider, error) {
	switch n.Provider {
	case model.Builtin:
		return builtin.New(n.Name), nil
	case model.Scripted:
		return scripted.New(n.Name, n.Script)
	case model.OpenAI, model.Anthropic:
		return r.remotes.Add(n.Name, n.Provider, n.Remote)
	case "":
		return nil, errors.New("no provider is given; there are " + providers)
	}
	return nil, fmt.Errorf("provider %q is unknown; there are %s", n.Provider, providers)
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

// Name is the configured name of the model that a name stands for: an alias's own model, and the default for the empty
// name.
func (r *Registry) Name(name string) string {
	if _, own := r.models[name]; own {
		return name
	}
	if alias, is := r.aliases[name]; is {
		name = alias
	}
	return cmp.Or(name, r.standard)
}

// Answer lets the named model answer, in pieces; the empty name stands for the default. Emit is called for one piece
// after the other, not always from the caller's goroutine, and does not wait. An error of it ends the
// answer and comes back as it is. An unknown name is an api.InvalidError, so a scripted model answers only where
// somebody wrote its name down: in the request's project or as the configured default.
func (r *Registry) Answer(
	ctx context.Context, name string, req model.Request, emit func(model.Delta) error,
) (model.Result, error) {
	p, err := r.find(name)
	if err != nil {
		return model.Result{}, err
	}
	return p.Answer(ctx, req, emit)
}

// Chat holds a conversation with the named model; the empty name stands for the default. Text and calls come back when
// the answer is complete; a try of which only a part came is made again. Arguments of calls are what the model wrote,
// and so is an answer of no words and no calls, which some models give.
//
// An error is ErrTooLong or ErrRefused where these say it, an *Unavailable where the model may be asked later, and a
// *Failure otherwise. A name whose model holds no conversations is an api.InvalidError.
func (r *Registry) Chat(ctx context.Context, name string, c model.Chat) (model.Reply, error) {
	p, err := r.find(name)
	if err != nil {
		return model.Reply{}, err
	}
	t, ok := p.(talker)
	if !ok || t.Window() == 0 {
		return model.Reply{}, &api.InvalidError{Problems: []api.Problem{{
			Field: "model", Message: fmt.Sprintf("model %q holds no conversations", cmp.Or(name, r.standard)),
		}}}
	}
	return t.Chat(ctx, c)
}

// Local is whether the processors of this machine make the named model's answers. A scripted model only waits.
func (r *Registry) Local(name string) bool {
	p, err := r.find(name)
	_, local := p.(builtin.Model)
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
		return t.Window(), nil
	}
	return 0, nil
}

func (r *Registry) find(name string) (provider, error) {
	p, ok := r.models[r.Name(name)]
	if !ok {
		return nil, &api.InvalidError{Problems: []api.Problem{{
			Field: "model", Message: fmt.Sprintf("no model is named %q; there are %s", name, strings.Join(r.names, ", ")),
		}}}
	}
	return p, nil
}
