// Package registry provides the models by name: it answers with the built-in model in place of one that fails, and
// counts what they are used for.
package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"docent/api"
	"docent/internal/tracing"
	"docent/model"
	"docent/model/builtin"
	"docent/model/remote"
	"docent/model/scripted"
)

// A Config lists the models that answers may be asked of. The built-in one is always there, under its own name, unless
// another model took that name.
type Config struct {
	Models  []Named
	Default string // name of the model that answers when none is named; "builtin" if empty
	Agent   string // name of the model that jobs are done with when none is named; the default if empty
	// Aliases are other names of models, each with the name of its model or with nothing for the default. A model that
	// has the name of an alias goes before it.
	Aliases map[string]string
}

// A Named is one configured model.
type Named struct {
	Name     string
	Provider string          // model.Builtin, model.OpenAI, model.Anthropic or model.Scripted
	Remote   remote.Config   // of a provider that is reached over HTTP
	Judge    string          // the model that says which claims of an answer hold if words do not decide; none if empty
	Script   scripted.Script // of the scripted provider

	// Rewrite names the model that reads questions together with their conversation before the documentation is searched;
	// this one itself if empty, none if Off. It may take RewriteTimeout; default four seconds.
	Rewrite        string
	RewriteTimeout time.Duration

	Revision string // another for each change of a model while the server runs
}

// Off stands in place of the name of a model that rewrites if none shall.
const Off = "off"

const defaultRewriteTimeout = 4 * time.Second

// A rewriter is the model that rewrites for another.
type rewriter struct {
	by    string
	limit time.Duration
}

// A provider writes one answer.
type provider interface {
	Answer(ctx context.Context, req model.Request, emit func(model.Delta) error) (model.Result, error)
}

// A teller is a provider that can say what it gets for a request.
type teller interface {
	Prompt(req model.Request) model.Prompt
}

// A chatter is a provider that can hold a conversation with tools.
type chatter interface {
	Chat(ctx context.Context, c model.Chat) (model.Reply, error)
	Window() int // 0 if it cannot as it is configured
}

// A Registry holds the models that are there now.
type Registry struct {
	changing sync.Mutex
	now      atomic.Pointer[state]
	remotes  remote.Set    // those of models that are reached over HTTP
	counted  []*remote.Set // whose use is in the metrics
}

// A state is the models between two changes.
type state struct {
	models    map[string]provider
	revisions map[string]string
	aliases   map[string]string
	names     []string
	standard  string
	agent     string
	fallbacks map[string]*atomic.Int64 // answers that the built-in model gave in place of others, by the others' names
	rewriters map[string]rewriter      // by the names of those that they rewrite for
}

// New checks the configuration and makes its models. Nothing is reached over the network yet.
func New(c Config) (*Registry, error) {
	r := &Registry{}
	r.counted = []*remote.Set{&r.remotes}
	r.now.Store(&state{fallbacks: map[string]*atomic.Int64{"": new(atomic.Int64)}})
	if err := r.Configure(c); err != nil {
		return nil, err
	}
	return r, nil
}

// Configure puts other models in the place of those that are there; questions that are being answered stay with theirs. A
// model whose revision is the same goes on with what is known of its endpoint. Nothing changes if the error is not nil.
func (r *Registry) Configure(c Config) error {
	r.changing.Lock()
	defer r.changing.Unlock()
	was := r.now.Load()
	s, made, err := r.build(c, was)
	if err != nil {
		for _, m := range made {
			r.remotes.Remove(m)
		}
		return err
	}
	for name, p := range was.models {
		if m, over := p.(*remote.Model); over && s.models[name] != p {
			r.remotes.Remove(m)
		}
	}
	r.now.Store(s)
	return nil
}

// build makes a state, and says which models it has made for it.
func (r *Registry) build(c Config, was *state) (s *state, made []*remote.Model, err error) {
	s = &state{models: map[string]provider{}, revisions: map[string]string{}, aliases: c.Aliases,
		standard: cmp.Or(c.Default, model.Builtin), fallbacks: map[string]*atomic.Int64{"": was.fallbacks[""]},
		rewriters: map[string]rewriter{}}
	s.agent = cmp.Or(c.Agent, s.standard)
	var problems []error
	for i, n := range c.Models {
		if n.Name == "" {
			problems = append(problems, fmt.Errorf("model %d has no name", i+1))
			continue
		}
		if _, taken := s.models[n.Name]; taken {
			problems = append(problems, fmt.Errorf("model %s is there twice", n.Name))
			continue
		}
		p, known := was.models[n.Name]
		if !known || was.revisions[n.Name] != n.Revision {
			if p, err = r.open(n); err != nil {
				problems = append(problems, fmt.Errorf("model %s: %w", n.Name, err))
				continue
			}
			if m, over := p.(*remote.Model); over {
				made = append(made, m)
			}
		}
		s.models[n.Name], s.revisions[n.Name] = p, n.Revision
		s.names = append(s.names, n.Name)
		if s.fallbacks[n.Name] = was.fallbacks[n.Name]; s.fallbacks[n.Name] == nil {
			s.fallbacks[n.Name] = new(atomic.Int64)
		}
		if _, over := p.(*remote.Model); over && n.Rewrite != Off {
			s.rewriters[n.Name] = rewriter{cmp.Or(n.Rewrite, n.Name), cmp.Or(n.RewriteTimeout, defaultRewriteTimeout)}
		}
	}
	if _, taken := s.models[model.Builtin]; !taken {
		s.models[model.Builtin] = builtin.New(model.Builtin)
		s.names = append(s.names, model.Builtin)
	}
	slices.Sort(s.names)
	problems = append(problems, s.judges(c.Models)...)
	if len(problems) == 0 {
		problems = s.namesOthers()
	}
	return s, made, errors.Join(problems...)
}

// judges gives models their judges.
func (s *state) judges(models []Named) (problems []error) {
	for _, n := range models {
		m, reached := s.models[n.Name].(*remote.Model)
		if n.Judge == "" || !reached || m.Judge != nil {
			continue
		}
		judge, ok := s.models[n.Judge].(*remote.Model)
		if !ok {
			problems = append(problems, fmt.Errorf("model %s: its judge %q is no language model that is configured", n.Name, n.Judge))
			continue
		}
		m.Judge = judge
	}
	return problems
}

// namesOthers says which models that are named are not there.
func (s *state) namesOthers() (problems []error) {
	for what, name := range map[string]string{"default": s.standard, "agent's": s.agent} {
		if _, ok := s.models[name]; !ok {
			problems = append(problems, fmt.Errorf("the %s model %q is none of %s", what, name, strings.Join(s.names, ", ")))
		}
	}
	for name, w := range s.rewriters {
		if _, ok := s.models[w.by].(*remote.Model); !ok {
			problems = append(problems, fmt.Errorf("model %s: rewrite names %q, which is no language model of %s",
				name, w.by, strings.Join(s.names, ", ")))
		}
	}
	for alias, name := range s.aliases {
		if _, ok := s.models[name]; !ok && name != "" {
			problems = append(problems, fmt.Errorf("the alias %q stands for %q, which is none of %s",
				alias, name, strings.Join(s.names, ", ")))
		}
	}
	return problems
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

// Resolve is the configured model that a name stands for: the one behind an alias, and nothing if the alias stands
// for the default. An unknown name is an api.InvalidError.
func (r *Registry) Resolve(name string) (string, error) {
	if _, err := r.find(name); err != nil {
		return "", err
	}
	s := r.now.Load()
	if _, own := s.models[name]; own {
		return name, nil
	}
	return s.aliases[name], nil
}

// Name is Resolve with the name of the default in place of nothing. An unknown name stands for itself.
func (r *Registry) Name(name string) string { return r.now.Load().name(name) }

func (s *state) name(name string) string {
	if _, own := s.models[name]; own {
		return name
	}
	if alias, is := s.aliases[name]; is {
		name = alias
	}
	return cmp.Or(name, s.standard)
}

// ForJobs is Name for a job: nothing, and an alias that stands for the default, name the agent's model.
func (r *Registry) ForJobs(name string) string {
	s := r.now.Load()
	if _, own := s.models[name]; !own && s.aliases[name] == "" && (name == "" || s.name(name) != name) {
		return s.agent
	}
	return s.name(name)
}

// Answer asks the named model for an answer, in pieces; the empty name stands for the default. Emit is called for one
// piece after the other, not always from the caller's goroutine, and must not wait. An error of emit ends the answer
// and is returned as it is. An unknown name is an api.InvalidError. So a scripted model answers only if its name was
// written down: in the request's project or as the configured default.
func (r *Registry) Answer(
	ctx context.Context, name string, req model.Request, emit func(model.Delta) error,
) (model.Result, error) {
	p, err := r.find(name)
	if err != nil {
		return model.Result{}, err
	}
	if _, over := p.(*remote.Model); over { // which tells of its calls itself
		return p.Answer(ctx, req, emit)
	}
	return here(ctx, r.Name(name), p, req, emit)
}

// here asks a model that is in this process.
//
//go:noinline
func here(ctx context.Context, name string, p provider, req model.Request, emit func(model.Delta) error) (
	model.Result, error) {
	ctx, span := tracing.Start(ctx, "chat")
	if span.On() {
		span.Name("chat " + name)
		span.Str("gen_ai.operation.name", "chat")
		span.Str("gen_ai.provider.name", "docent")
		span.Str("gen_ai.request.model", name)
		span.Int("docent.passages", int64(len(req.Passages)))
	}
	result, err := p.Answer(ctx, req, emit)
	if span.On() {
		span.Bool("docent.answered", result.Answered)
		if result.Reason != "" {
			span.Strs("gen_ai.response.finish_reasons", result.Reason)
		}
		span.Done(err)
	}
	return result, err
}

// Chat holds a conversation with the named model; the empty name stands for the default. The reply is complete: a try
// of which only a part came is repeated. Arguments of calls are as the model wrote them, and a reply may have neither
// words nor calls, as some models end so.
//
// An error is model.ErrTooLong, model.ErrRefused, a *model.Unavailable if the model may be asked later, or a
// *remote.Failure. The name of a model that holds no conversations is an api.InvalidError.
func (r *Registry) Chat(ctx context.Context, name string, c model.Chat) (model.Reply, error) {
	p, err := r.find(name)
	if err != nil {
		return model.Reply{}, err
	}
	t, ok := p.(chatter)
	if !ok || t.Window() == 0 {
		return model.Reply{}, &api.InvalidError{Problems: []api.Problem{{
			Field: "model", Message: fmt.Sprintf("model %q holds no conversations", cmp.Or(name, r.now.Load().standard)),
		}}}
	}
	return t.Chat(ctx, c)
}

// Rewriter is the model that reads questions for the named one before the documentation is searched, and how long it
// may take. It is empty if none does: for the built-in model, for scripted ones, and if that is turned off.
func (r *Registry) Rewriter(name string) (by string, limit time.Duration) {
	w := r.now.Load().rewriters[r.Name(name)]
	return w.by, w.limit
}

// Prompt is what the named model would get for a request, without asking it; the empty name stands for the default. An
// unknown name is an api.InvalidError.
func (r *Registry) Prompt(name string, req model.Request) (model.Prompt, error) {
	p, err := r.find(name)
	if err != nil {
		return model.Prompt{}, err
	}
	if t, ok := p.(teller); ok {
		return t.Prompt(req), nil
	}
	return model.Prompt{Model: r.Name(name), Provider: model.Scripted}, nil
}

// Choices lists the configured models and the built-in one, in the order of their names.
func (r *Registry) Choices() []model.Choice {
	s := r.now.Load()
	out := make([]model.Choice, 0, len(s.names))
	for _, name := range s.names {
		c := model.Choice{Name: name, Provider: model.Scripted, Default: name == s.standard, Agent: name == s.agent}
		switch p := s.models[name].(type) {
		case builtin.Model:
			c.Provider = model.Builtin
		case *remote.Model:
			c.Provider = p.Provider()
		}
		out = append(out, c)
	}
	return out
}

// Local reports whether this machine's processors make the named model's answers. A scripted model only waits.
func (r *Registry) Local(name string) bool {
	p, err := r.find(name)
	_, local := p.(builtin.Model)
	return err == nil && local
}

// Window is how many tokens a conversation with the named model and its reply may have together; 0 for a model that
// holds no conversations, such as the built-in one.
func (r *Registry) Window(name string) (int, error) {
	p, err := r.find(name)
	if err != nil {
		return 0, err
	}
	if t, ok := p.(chatter); ok {
		return t.Window(), nil
	}
	return 0, nil
}

// Priced reports whether it is known what the named model's tokens cost; nothing is asked of others than language models.
func (r *Registry) Priced(name string) bool {
	p, err := r.find(name)
	m, over := p.(*remote.Model)
	return err == nil && (!over || m.Priced())
}

// Sees reports whether the named model reads pictures.
func (r *Registry) Sees(name string) bool {
	p, err := r.find(name)
	m, ok := p.(*remote.Model)
	return err == nil && ok && m.Sees()
}

func (r *Registry) find(name string) (provider, error) {
	s := r.now.Load()
	p, ok := s.models[s.name(name)]
	if !ok {
		return nil, &api.InvalidError{Problems: []api.Problem{{
			Field: "model", Message: fmt.Sprintf("must be one of %s, not %q", strings.Join(s.names, ", "), name),
		}}}
	}
	return p, nil
}
