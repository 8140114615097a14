package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"docent/model"
)

// An EmbedderConfig says how an endpoint that speaks OpenAI's embeddings is reached, and what bounds it.
type EmbedderConfig struct {
	BaseURL        string        // the public address of OpenAI if empty
	Model          string        // the endpoint's name of it
	Key            func() string // as of Config
	Dimensions     int           // asked for; the model's own number if zero
	Batch          int           // texts of one request; default 64
	Longest        int           // bytes of a text; default 2000
	SectionPrefix  string        // before each section, as models like e5 want
	QuestionPrefix string        // before each question

	QuestionLimit time.Duration // that a reader waits for a question's vector; default 500 ms
	Total         time.Duration // for a request with sections; a minute if zero
	Attempts      int           // for a request with sections; default 3
	Backoff       time.Duration // first wait between two of them, if the endpoint names none; default half a second
	Price         float64       // US dollars for a million tokens
	DayTokens     int64         // that may be used in a day (UTC); no limit if zero
	Transport     http.RoundTripper
}

// An Embedder turns texts into vectors. Sections and questions have a circuit each: a machine that is busy with sections
// and late with questions is still good for sections.
type Embedder struct {
	config              EmbedderConfig
	sections, questions *Model
	day                 *dayLimit
	set                 *Set
}

// Embedder checks a configuration and makes an embedder. Nothing is reached over the network yet. What the set's embedders
// before it have used today counts, and its limit is theirs from now on.
func (s *Set) Embedder(name string, c EmbedderConfig) (*Embedder, error) {
	if min(c.Dimensions, c.Batch, c.Longest, c.Attempts) < 0 || min(c.QuestionLimit, c.Total, c.Backoff) < 0 ||
		c.DayTokens < 0 {
		return nil, errors.New("limits are not negative")
	}
	c.Batch, c.Longest = cmp.Or(c.Batch, 64), cmp.Or(c.Longest, 2000)
	c.QuestionLimit, c.Total = cmp.Or(c.QuestionLimit, 500*time.Millisecond), cmp.Or(c.Total, time.Minute)
	c.Attempts = cmp.Or(c.Attempts, defaultAttempts)
	s.day.limit(c.DayTokens)
	e := &Embedder{config: c, day: &s.day, set: s}
	return e, e.open(name)
}

func (e *Embedder) open(name string) (err error) {
	c := e.config
	both := Config{BaseURL: c.BaseURL, Model: c.Model, Key: c.Key, Backoff: c.Backoff, Price: Price{Prompt: c.Price},
		Transport: c.Transport}
	sections, questions := both, both
	sections.circuit, questions.circuit = "sections", "questions"
	sections.Idle, sections.Total, sections.Attempts = c.Total, time.Duration(c.Attempts)*(c.Total+longestWait), c.Attempts
	questions.Idle, questions.Total, questions.Attempts = c.QuestionLimit, c.QuestionLimit+time.Second, 1
	if e.sections, err = e.set.Add(name+": sections", model.OpenAI, sections); err != nil {
		return err
	}
	e.questions, err = e.set.Add(name+": questions", model.OpenAI, questions)
	return err
}

// Like is an embedder that asks the same endpoint, within the same limits, for another model's vectors of questions.
func (e *Embedder) Like(name, modelName string, dimensions int) (*Embedder, error) {
	other := &Embedder{config: e.config, day: e.day, set: new(Set)}
	other.config.Model, other.config.Dimensions = modelName, dimensions
	return other, other.open(name)
}

// Close takes an embedder that is not used any more out of its set.
func (e *Embedder) Close() {
	e.set.Remove(e.sections)
	e.set.Remove(e.questions)
}

// Config is the configuration with its defaults.
func (e *Embedder) Config() EmbedderConfig { return e.config }

// ErrDay says that no more may be used today.
var ErrDay = errors.New("over budget: the tokens of the day are used up")

// Question is the vector of a question. It is there within the limit, or not at all.
func (e *Embedder) Question(ctx context.Context, text string) ([]float32, error) {
	list, err := e.ask(ctx, e.questions, []string{e.config.QuestionPrefix + cutTo(text, e.config.Longest)})
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// Sections are the vectors of texts, in their order; of one that the endpoint refuses however short it is cut, none.
func (e *Embedder) Sections(ctx context.Context, texts []string) ([][]float32, error) {
	bounded := make([]string, len(texts))
	for i, text := range texts {
		bounded[i] = e.config.SectionPrefix + cutTo(text, e.config.Longest)
	}
	return e.split(ctx, bounded, false)
}

// shortest is from how many bytes on a text that is refused is cut no further.
const shortest = 200

// split asks for texts, and if they are refused together, for each part: the endpoint does not say which it means.
func (e *Embedder) split(ctx context.Context, texts []string, probed bool) ([][]float32, error) {
	list, err := e.ask(ctx, e.sections, texts)
	var f *Failure
	if err == nil || !errors.As(err, &f) || !f.ofText() {
		return list, err
	}
	if !probed { // an endpoint that refuses any text is set up wrongly
		if _, err := e.ask(ctx, e.sections, []string{e.config.SectionPrefix + "Introduction"}); err != nil {
			return nil, err
		}
	}
	if len(texts) == 1 {
		if len(texts[0]) <= shortest {
			return make([][]float32, 1), nil
		}
		return e.split(ctx, []string{cutTo(texts[0], len(texts[0])/2)}, true)
	}
	half := len(texts) / 2
	first, err := e.split(ctx, texts[:half], true)
	if err != nil {
		return nil, err
	}
	second, err := e.split(ctx, texts[half:], true)
	return append(first, second...), err
}

// ofText reports whether a failure may be about the text that was sent.
func (f *Failure) ofText() bool {
	switch f.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	}
	return errors.Is(f, model.ErrTooLong) // some servers say so with a status of 500
}

func (e *Embedder) ask(ctx context.Context, m *Model, texts []string) ([][]float32, error) {
	if after, ok := e.day.open(); !ok {
		return nil, &model.Unavailable{Model: m.name, After: after, Err: ErrDay}
	}
	var list [][]float32
	ctx, span := m.trace(ctx, "embeddings")
	end, err := m.tries(ctx, "", (*Failure).Temporary, false, func(ctx context.Context) (ending, error) {
		_, over := m.took.request(ctx)
		defer over()
		return m.exchanged(ctx, false, true, func(ctx context.Context, x *exchange) (end ending, err error) {
			list, end, err = m.embed(ctx, x, texts, e.config.Dimensions)
			return end, err
		})
	})
	traced(span, &end, err)
	e.day.use(int64(end.usage.PromptTokens))
	return list, err
}

// embed asks for the vectors of texts.
func (r *Model) embed(ctx context.Context, x *exchange, texts []string, dimensions int) ([][]float32, ending, error) {
	body := map[string]any{"model": r.Model, "input": texts}
	if dimensions > 0 {
		body["dimensions"] = dimensions
	}
	resp, err := r.postTo(ctx, x, r.BaseURL+"/embeddings", bearer, body)
	if err != nil {
		return nil, ending{}, err
	}
	defer resp.Body.Close()
	var answer struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
		Usage chatUsage `json:"usage"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return nil, ending{}, fmt.Errorf("read the vectors: %w", err)
	}
	end := ending{usage: answer.Usage.usage()}
	if end.usage.PromptTokens == 0 { // some servers do not count
		for _, text := range texts {
			end.usage.PromptTokens += len(text)/4 + 1
		}
	}
	list := make([][]float32, len(texts))
	for _, v := range answer.Data {
		if v.Index < 0 || v.Index >= len(list) || list[v.Index] != nil || !sound(v.Embedding) {
			return nil, end, &reported{text: "the vectors are not those of the texts"}
		}
		list[v.Index] = v.Embedding
	}
	for _, v := range list {
		if len(v) == 0 || len(v) != len(list[0]) {
			return nil, end, &reported{text: fmt.Sprintf("%d vectors came for %d texts", len(answer.Data), len(texts))}
		}
	}
	return list, end, nil
}

// sound reports whether a vector has a direction.
func sound(v []float32) bool {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return sum > 0 && !math.IsInf(sum, 0) && !math.IsNaN(sum)
}

// cutTo is the beginning of a text, up to the last whole word if there is one.
func cutTo(text string, most int) string {
	if len(text) <= most {
		return text
	}
	cut := text[:most]
	for len(cut) > 0 && !utf8.RuneStart(text[len(cut)]) {
		cut = cut[:len(cut)-1]
	}
	if at := strings.LastIndexAny(cut, " \n\t"); at > most/2 {
		cut = cut[:at]
	}
	return cut
}

// A dayLimit counts what is used in a day. It starts from zero when the process starts.
type dayLimit struct {
	most int64
	mu   sync.Mutex
	day  int64
	used int64
}

const dayLong = 24 * time.Hour

func (d *dayLimit) limit(most int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.most = most
}

// open reports whether something may still be used, and if not, when.
func (d *dayLimit) open() (after time.Duration, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	d.turn(now)
	if d.most == 0 || d.used < d.most {
		return 0, true
	}
	return now.Truncate(dayLong).Add(dayLong).Sub(now), false
}

func (d *dayLimit) use(tokens int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn(time.Now())
	d.used += tokens
}

func (d *dayLimit) turn(now time.Time) {
	if day := now.Unix() / int64(dayLong/time.Second); day != d.day {
		d.day, d.used = day, 0
	}
}
