package remote

import (
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"docent/model"
)

// When a circuit opens, and for how long.
const (
	tripAfter  = 5               // failed tries in a row
	tripShare  = 2               // of these count of one caller: one job that stalls is not the endpoint
	firstPause = 5 * time.Second // doubled each time that a probe fails
	lastPause  = 2 * time.Minute
	probePause = 2 * time.Second // told to callers who come while the probe is under way
)

// A breaker is the circuit breaker of an endpoint. After some failures in a row the circuit opens: callers are refused
// at once instead of waiting for one more failure each. After a pause it is half open: a single call goes through,
// which closes the circuit or makes the pause longer.
type breaker struct {
	address string // scheme and host
	mu      sync.Mutex
	failed  int            // in a row
	counted int            // of these, those that count towards opening the circuit
	callers map[string]int // how often each caller has failed in this row
	pause   time.Duration
	until   time.Time // open until then; zero while closed
	probing bool
	opened  int // times, since the start
	last    Failure
}

// A permit is one try at an endpoint.
type permit struct {
	b      *breaker
	probe  bool
	caller string
}

// admit lets a try of a caller through, or says how long to wait. Tries of nobody in particular have no name.
func (b *breaker) admit(caller string) (permit, time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.until.IsZero() {
		return permit{b: b, caller: caller}, 0, true
	}
	if wait := time.Until(b.until); wait > 0 {
		return permit{}, wait, false
	}
	if b.probing {
		return permit{}, probePause, false
	}
	b.probing = true
	return permit{b, true, caller}, 0, true
}

// succeeded says that the endpoint answered, be it with a refusal.
func (p permit) succeeded() {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	p.b.failed, p.b.pause, p.b.until, p.b.probing = 0, 0, time.Time{}, false
	p.b.counted, p.b.callers = 0, nil
}

// failed says that the endpoint failed, and how.
func (p permit) failed(f *Failure) {
	b := p.b
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed++
	b.last = *f
	if b.until.IsZero() && (p.caller == "" || b.callers[p.caller] < tripShare) {
		b.counted++
		if b.callers == nil {
			b.callers = map[string]int{}
		}
		b.callers[p.caller]++
	}
	if p.probe {
		b.probing = false
	} else if !b.until.IsZero() || b.counted < tripAfter {
		return // a try that began before the circuit opened tells nothing new
	}
	b.pause = min(max(2*b.pause, firstPause), lastPause)
	b.until = time.Now().Add(min(max(b.pause, f.RetryAfter), lastPause))
	b.opened++
}

// why is the error of a try that is not let through: how the endpoint failed last.
func (b *breaker) why(model string) *Failure {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.last
	f.Model, f.RetryAfter = model, 0
	f.Detail = strings.TrimSpace(f.Detail + " (circuit open: it failed repeatedly)")
	return &f
}

// callerOf is who asks, by the key of the call: the job, or the question, that it belongs to.
func callerOf(key string) string {
	if at := strings.IndexAny(key, "/.+"); at >= 0 {
		key = key[:at]
	}
	return key
}

// abandoned says nothing about the endpoint: the caller ended the try. The next one may probe in its place.
func (p permit) abandoned() {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	if p.probe {
		p.b.probing = false
	}
}

// A Set holds models that are reached over HTTP. Those at the same address with the same key have one breaker in
// common.
type Set struct {
	mu       sync.Mutex
	models   []*Model
	breakers map[[3]string]*breaker // by address, what is asked there, and key
	learned  map[[2]string]*learned // by address, and the model there
	took     *latencies
	day      dayLimit // of its embedders together: one that takes another's place begins no day of its own
}

func (s *Set) breaker(base, use, key string) *breaker {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := [3]string{base, use, key}
	b := s.breakers[id]
	if b == nil {
		b = &breaker{address: base}
		if u, err := url.Parse(base); err == nil {
			b.address = u.Scheme + "://" + u.Host
		}
		if s.breakers == nil {
			s.breakers = map[[3]string]*breaker{}
		}
		s.breakers[id] = b
	}
	return b
}

// Remove forgets a model. Who is asking it still may.
func (s *Set) Remove(m *Model) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.models = slices.DeleteFunc(slices.Clone(s.models), func(other *Model) bool { return other == m })
}

func (s *Set) all() []*Model {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.models
}

// States of an endpoint's circuit.
const (
	Closed   = "closed"    // calls go through
	Open     = "open"      // calls are refused at once
	HalfOpen = "half-open" // one call is tried
)

// An Endpoint is the state of the address behind some models.
type Endpoint struct {
	Address  string
	Models   []string // that are reached there
	State    string
	Failures int           // tries that failed in a row
	Opened   int           // how often the circuit has opened since the start
	After    time.Duration // until the next try is let through, while it is open
}

// Endpoints lists the addresses of the models, by the models' names.
func (s *Set) Endpoints() []Endpoint {
	models := map[*breaker][]string{}
	for _, m := range s.all() {
		models[m.breaker] = append(models[m.breaker], m.name)
	}
	var list []Endpoint
	for b, names := range models {
		slices.Sort(names)
		b.mu.Lock()
		e := Endpoint{Address: b.address, Models: names, State: Closed, Failures: b.failed, Opened: b.opened}
		switch wait := time.Until(b.until); {
		case b.until.IsZero():
		case wait > 0:
			e.State, e.After = Open, wait
		default:
			e.State = HalfOpen
		}
		b.mu.Unlock()
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b Endpoint) int { return strings.Compare(a.Models[0], b.Models[0]) })
	return list
}

// A counter counts what a model was used for.
type counter struct {
	calls, failures, tries           atomic.Int64
	prompt, cached, completion, cost atomic.Int64
}

func (c *counter) add(u model.Usage) {
	c.prompt.Add(int64(u.PromptTokens))
	c.cached.Add(int64(u.CachedTokens))
	c.completion.Add(int64(u.CompletionTokens))
	c.cost.Add(u.Cost)
}

// A Use is what a model was used for since the start, answers that broke off included as far as the provider told.
type Use struct {
	Model    string
	Calls    int64 // answers and turns of conversations
	Failures int64 // of these, those that failed
	Tries    int64 // requests, repeated ones included
	Tokens   struct{ Prompt, Cached, Completion int64 }
	Cost     int64 // in millionths of a US dollar
	Priced   bool  // it is known what its tokens cost
	Manners  string
}

// Uses lists the models with what they were used for, by name.
func (s *Set) Uses() []Use {
	var list []Use
	for _, m := range s.all() {
		c := &m.used
		u := Use{Model: m.name, Calls: c.calls.Load(), Failures: c.failures.Load(), Tries: c.tries.Load(), Priced: m.Priced(), Manners: m.Manners()}
		u.Cost = c.cost.Load()
		u.Tokens.Prompt, u.Tokens.Cached, u.Tokens.Completion = c.prompt.Load(), c.cached.Load(), c.completion.Load()
		list = append(list, u)
	}
	slices.SortFunc(list, func(a, b Use) int { return strings.Compare(a.Model, b.Model) })
	return list
}
