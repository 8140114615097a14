package remote_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"docent/model"
	"docent/model/modeltest"
	"docent/model/remote"
)

// An embeddingServer plays an endpoint of embeddings: a vector has the length of its text and the number 1.
type embeddingServer struct {
	mu      sync.Mutex
	asked   [][]string
	faults  []int // statuses of the next answers; 0 for a good one, -1 for none in time
	after   string
	longest int // it refuses longer texts
	body    string
}

func (s *embeddingServer) RoundTrip(req *http.Request) (*http.Response, error) {
	var in struct {
		Model      string
		Input      []string
		Dimensions int
	}
	if err := json.NewDecoder(req.Body).Decode(&in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.asked = append(s.asked, in.Input)
	fault := 0
	if len(s.faults) > 0 {
		fault, s.faults = s.faults[0], s.faults[1:]
	}
	s.mu.Unlock()
	reply := func(status int, body string) (*http.Response, error) {
		return modeltest.Response(status, map[string]string{"Content-Type": "application/json", "Retry-After": s.after},
			io.NopCloser(strings.NewReader(body))), nil
	}
	switch {
	case fault == -1:
		<-req.Context().Done()
		return nil, req.Context().Err()
	case fault != 0:
		return reply(fault, `{"error":{"message":"no"}}`)
	case s.longest > 0 && slices.ContainsFunc(in.Input, func(t string) bool { return len(t) > s.longest }):
		return reply(400, `{"error":{"message":"input is too large to process"}}`)
	case s.body != "":
		return reply(200, s.body)
	}
	var list []string
	for i := len(in.Input) - 1; i >= 0; i-- { // in any order
		list = append(list, fmt.Sprintf(`{"index":%d,"embedding":[%d,1]}`, i, len(in.Input[i])))
	}
	return reply(200, `{"data":[`+strings.Join(list, ",")+`],"usage":{"prompt_tokens":10,"total_tokens":10}}`)
}

// Settings that are saved again do not begin the day's count again.
func TestAnEmbedderThatTakesAnothersPlaceCountsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which begins at midnight UTC
		s := &embeddingServer{}
		set, e := embedding(t, s, func(c *remote.EmbedderConfig) { c.DayTokens = 15 })
		for range 2 {
			if _, err := e.Question(t.Context(), "why"); err != nil {
				t.Fatal(err)
			}
		}
		again := func(most int64) error {
			c := e.Config()
			c.DayTokens = most
			e.Close()
			var err error
			if e, err = set.Embedder("embeddings", c); err != nil {
				t.Fatal(err)
			}
			_, err = e.Question(t.Context(), "why")
			return err
		}
		if err := again(15); !errors.Is(err, remote.ErrDay) {
			t.Errorf("saved again: %v", err)
		}
		if err := again(25); err != nil {
			t.Errorf("with a higher limit: %v", err)
		}
	})
}

func embedding(t *testing.T, s *embeddingServer, change func(*remote.EmbedderConfig)) (*remote.Set, *remote.Embedder) {
	t.Helper()
	c := remote.EmbedderConfig{BaseURL: "http://embed.example/v1", Model: "e", Transport: s, SectionPrefix: "p: ",
		QuestionPrefix: "q: ", Longest: 1000}
	if change != nil {
		change(&c)
	}
	set := new(remote.Set)
	e, err := set.Embedder("embeddings", c)
	if err != nil {
		t.Fatal(err)
	}
	return set, e
}

func TestTextsBecomeVectorsInTheirOrder(t *testing.T) {
	s := &embeddingServer{}
	set, e := embedding(t, s, func(c *remote.EmbedderConfig) { c.Price = 2 })
	list, err := e.Sections(t.Context(), []string{"a", "bcd", strings.Repeat("long ", 1000)})
	if err != nil || len(list) != 3 || list[0][0] != 4 || list[1][0] != 6 || list[2][0] > 1003 {
		t.Errorf("%v, %v", list, err)
	}
	if v, err := e.Question(t.Context(), "why"); err != nil || v[0] != 6 || s.asked[1][0] != "q: why" {
		t.Errorf("%v, %v", v, err)
	}
	uses := set.Uses()
	if len(uses) != 2 || uses[0].Tokens.Prompt != 10 || uses[0].Cost != 20 || uses[1].Calls != 1 {
		t.Errorf("%+v", uses)
	}
}

// Whatever an endpoint sends that is not a vector for each text is no vector.
func TestVectorsThatAreNoneAreRefused(t *testing.T) {
	for name, body := range map[string]string{
		"too few": `{"data":[{"index":0,"embedding":[1]}]}`, "twice": `{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`,
		"of no text": `{"data":[{"index":0,"embedding":[1]},{"index":7,"embedding":[1]}]}`,
		"empty":      `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[]}]}`,
		"unequal":    `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}`,
		"nowhere":    `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[0]}]}`,
		"no data":    `{}`, "no JSON": `<html>`,
	} {
		_, e := embedding(t, &embeddingServer{body: body}, func(c *remote.EmbedderConfig) { c.Attempts = 1 })
		if list, err := e.Sections(t.Context(), []string{"a", "b"}); err == nil {
			t.Errorf("%s: %v", name, list)
		}
	}
}

// Sections are asked for again, as long as the endpoint says; a question is not waited for beyond its limit, and once
// that has happened repeatedly, not at all.
func TestAReaderWaitsForAQuestionWithinItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &embeddingServer{faults: []int{429, 503}, after: "7"}
		set, e := embedding(t, s, nil)
		began := time.Now()
		if _, err := e.Sections(t.Context(), []string{"a"}); err != nil || time.Since(began) != 14*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		s.after, s.faults = "", []int{-1, -1, -1, -1, -1, 0}
		for range 5 {
			began = time.Now()
			_, err := e.Question(t.Context(), "why")
			var f *remote.Failure
			if !errors.As(err, &f) || !f.Silent() || time.Since(began) != 500*time.Millisecond {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		}
		began = time.Now()
		var later *model.Unavailable
		if _, err := e.Question(t.Context(), "why"); !errors.As(err, &later) || later.After == 0 || time.Since(began) != 0 {
			t.Errorf("with the circuit open: %v after %v", err, time.Since(began))
		}
		if states := set.Endpoints(); states[0].State != remote.Open && states[1].State != remote.Open {
			t.Errorf("%+v", states)
		}
		if _, err := e.Sections(t.Context(), []string{"b"}); err != nil { // their circuit is another one
			t.Error(err)
		}
		time.Sleep(5 * time.Second)
		if _, err := e.Question(t.Context(), "why"); err != nil {
			t.Error("once it is well:", err)
		}
	})
}

// A text that is refused for its length is cut until it is taken, and keeps the others of its request from nothing. An
// endpoint that refuses any text is set up wrongly.
func TestARefusedTextIsCut(t *testing.T) {
	s := &embeddingServer{longest: 300}
	_, e := embedding(t, s, nil)
	list, err := e.Sections(t.Context(), []string{"a", strings.Repeat("word ", 180), "c", "d"})
	if err != nil || len(list) != 4 || list[0][0] != 4 || list[1][0] < 200 || list[1][0] > 300 || list[3][0] != 4 {
		t.Errorf("%v, %v", list, err)
	}
	s.longest = 1
	if list, err = e.Sections(t.Context(), []string{"a", "b"}); err == nil {
		t.Errorf("an endpoint that refuses all gave %v", list)
	}
}

func TestADayHasItsTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which begins at midnight UTC
		s := &embeddingServer{}
		_, e := embedding(t, s, func(c *remote.EmbedderConfig) { c.DayTokens = 15 })
		for range 2 {
			if _, err := e.Question(t.Context(), "why"); err != nil {
				t.Fatal(err)
			}
		}
		var later *model.Unavailable
		if _, err := e.Sections(t.Context(), []string{"a"}); !errors.Is(err, remote.ErrDay) || !errors.As(err, &later) ||
			later.After != 24*time.Hour || len(s.asked) != 2 {
			t.Errorf("%v, asked %q", err, s.asked)
		}
		time.Sleep(24 * time.Hour)
		if _, err := e.Sections(t.Context(), []string{"a"}); err != nil {
			t.Error(err)
		}
	})
}
