package remote_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"docent/api"
	"docent/model"
	"docent/model/modeltest"
	"docent/model/registry"
	"docent/model/remote"
)

// An endpoint whose health is set, and which counts who came through.
type endpoint struct {
	mu    sync.Mutex
	sick  bool
	after string
	asked int
	wait  time.Duration
}

func (e *endpoint) set(sick bool, after string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sick, e.after = sick, after
}

func (e *endpoint) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked
}

func (e *endpoint) transport(provider string) modeltest.Transport {
	return func(req *http.Request) (*http.Response, error) {
		e.mu.Lock()
		e.asked++
		sick, after, wait := e.sick, e.after, e.wait
		e.mu.Unlock()
		if wait > 0 {
			select {
			case <-time.After(wait):
			case <-req.Context().Done():
				return nil, req.Context().Err()
			}
		}
		if sick {
			return modeltest.Response(503, map[string]string{"Retry-After": after}, io.NopCloser(strings.NewReader("{}"))), nil
		}
		wire := providers[provider]
		return modeltest.Response(200, nil, io.NopCloser(strings.NewReader(wire.text("good [1]")+wire.end("stop")))), nil
	}
}

func breaking(t *testing.T, provider string, e *endpoint) *registry.Registry {
	t.Helper()
	n := registry.Named{Name: "a", Provider: provider,
		Remote: remote.Config{Model: "m", Key: modeltest.Key(secret), Attempts: 1, Transport: e.transport(provider)}}
	same, other := n, n
	same.Name = "b"
	other.Name, other.Remote.Key = "c", modeltest.Key("another")
	r, err := registry.New(registry.Config{Models: []registry.Named{n, same, other}, Default: "a"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func unavailable(t *testing.T, r *registry.Registry, name string) *model.Unavailable {
	t.Helper()
	c := conversation
	c.Key = api.NewID("job_", time.Now()) + "/1" // of a job of its own
	_, err := r.Chat(t.Context(), name, c)
	var u *model.Unavailable
	if !errors.As(err, &u) || u.Model != name || u.After <= 0 || strings.Contains(err.Error(), secret) {
		t.Fatalf("%s: %v", name, err)
	}
	return u
}

func TestAnEndpointThatFailsIsSparedAndTriedAgain(t *testing.T) {
	eachProvider(t, func(t *testing.T, provider string) {
		synctest.Test(t, func(t *testing.T) {
			e := &endpoint{sick: true}
			r := breaking(t, provider, e)
			state := func() remote.Endpoint { return r.Endpoints()[0] }
			for range 4 {
				unavailable(t, r, "a")
			}
			if s := state(); s.State != remote.Closed || s.Failures != 4 || !slices.Equal(s.Models, []string{"a", "b"}) {
				t.Fatalf("%+v", s)
			}
			unavailable(t, r, "b") // the fifth in a row, of whichever model
			if s := state(); s.State != remote.Open || s.Opened != 1 || s.After != 5*time.Second {
				t.Fatalf("%+v", s)
			}
			begin := time.Now()
			if u := unavailable(t, r, "a"); u.After != 5*time.Second || e.count() != 5 || time.Since(begin) != 0 {
				t.Errorf("asked %d times: %v in %v", e.count(), u.After, time.Since(begin))
			}
			var got collected
			if _, err := r.Answer(t.Context(), "a", request, got.emit); err == nil || e.count() != 5 {
				t.Errorf("asked %d times: %v", e.count(), err)
			}
			unavailable(t, r, "c") // with a key of its own
			if e.count() != 6 {
				t.Error("an endpoint with another key was spared too")
			}
			for _, pause := range []time.Duration{5, 10, 20, 40, 80, 120, 120} {
				time.Sleep(pause*time.Second - time.Nanosecond)
				before := e.count()
				if unavailable(t, r, "a"); e.count() != before {
					t.Fatalf("tried before %v had passed", pause*time.Second)
				}
				time.Sleep(time.Nanosecond)
				if s := state(); s.State != remote.HalfOpen {
					t.Errorf("%+v", s)
				}
				if unavailable(t, r, "a"); e.count() != before+1 {
					t.Fatalf("not tried when %v had passed", pause*time.Second)
				}
			}
			e.set(false, "")
			time.Sleep(2 * time.Minute)
			for range 3 {
				if _, err := r.Chat(t.Context(), "b", conversation); err != nil {
					t.Error(err)
				}
			}
			if s := state(); s.State != remote.Closed || s.Failures != 0 {
				t.Errorf("%+v", s)
			}
		})
	})
}

// One job that stalls is no reason to refuse others' first requests.
func TestOneCallersFailuresDoNotOpenTheCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{sick: true}
		r := breaking(t, model.OpenAI, e)
		for range 20 {
			if _, err := r.Chat(t.Context(), "a", conversation); err == nil {
				t.Fatal("no failure")
			}
		}
		if s := r.Endpoints()[0]; s.State != remote.Closed || s.Failures != 20 || e.count() != 20 {
			t.Fatalf("%+v", s)
		}
		for range 3 {
			unavailable(t, r, "b")
		}
		if s := r.Endpoints()[0]; s.State != remote.Open || e.count() != 23 {
			t.Errorf("%+v", s)
		}
	})
}

func TestOneCallAloneTriesASickEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{sick: true}
		r := breaking(t, model.OpenAI, e)
		for range 5 {
			unavailable(t, r, "a")
		}
		time.Sleep(5 * time.Second)
		e.mu.Lock()
		e.sick, e.wait = false, time.Second
		e.mu.Unlock()
		var wg sync.WaitGroup
		through := make(chan error, 20)
		for range 20 {
			wg.Go(func() {
				_, err := r.Chat(t.Context(), "a", conversation)
				through <- err
			})
		}
		wg.Wait()
		close(through)
		good := 0
		for err := range through {
			var u *model.Unavailable
			switch {
			case err == nil:
				good++
			case !errors.As(err, &u) || u.After != 2*time.Second:
				t.Errorf("got %v", err)
			}
		}
		if good != 1 || e.count() != 6 {
			t.Errorf("%d came through, the endpoint was asked %d times", good, e.count())
		}
		if _, err := r.Chat(t.Context(), "a", conversation); err != nil {
			t.Error(err)
		}
	})
}

func TestAProbeThatItsCallerEndsLeavesRoomForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{sick: true}
		r := breaking(t, model.OpenAI, e)
		for range 5 {
			unavailable(t, r, "a")
		}
		time.Sleep(5 * time.Second)
		e.mu.Lock()
		e.sick, e.wait = false, time.Second
		e.mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := r.Chat(ctx, "a", conversation); !errors.Is(err, ctx.Err()) {
			t.Errorf("got %v", err)
		}
		if s := r.Endpoints()[0]; s.State != remote.HalfOpen {
			t.Errorf("%+v", s)
		}
		if _, err := r.Chat(t.Context(), "a", conversation); err != nil {
			t.Error(err)
		}
	})
}

func TestAnEndpointSaysHowLongItWantsToBeSpared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{sick: true, after: "60"}
		r := breaking(t, model.OpenAI, e)
		for range 5 {
			if u := unavailable(t, r, "a"); u.After != time.Minute {
				t.Errorf("after %v", u.After)
			}
		}
		if u := unavailable(t, r, "a"); u.After != time.Minute || e.count() != 5 {
			t.Errorf("asked %d times, after %v", e.count(), u.After)
		}
	})
}

func TestRefusalsAreNoFailuresOfTheEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		r := open(t, registry.Named{Name: "r", Provider: model.OpenAI,
			Remote: remote.Config{Model: "m", Key: modeltest.Key(secret), Attempts: 1,
				Transport: modeltest.Transport(func(req *http.Request) (*http.Response, error) {
					asked++
					return modeltest.Response(400, nil, io.NopCloser(strings.NewReader(`{"error":{"message":"no such option"}}`))), nil
				})}})
		for range 20 {
			if _, err := r.Chat(t.Context(), "", conversation); err == nil {
				t.Fatal("no error")
			}
		}
		if s := r.Endpoints()[0]; asked != 20 || s.State != remote.Closed || s.Failures != 0 {
			t.Errorf("asked %d times: %+v", asked, s)
		}
	})
}

// Each model counts what it was used for, what broke off included.
func TestUseIsCounted(t *testing.T) {
	eachProvider(t, func(t *testing.T, provider string) {
		synctest.Test(t, func(t *testing.T) {
			wire := providers[provider]
			asked := 0
			r := open(t, registry.Named{Name: "r", Provider: provider,
				Remote: remote.Config{Model: "m", Key: modeltest.Key(secret), Price: remote.Price{Prompt: 2, Completion: 10},
					Transport: modeltest.Transport(func(req *http.Request) (*http.Response, error) {
						switch asked++; asked {
						case 1: // told its usage, then broke off
							cut := withCalls[provider]
							at := strings.Index(cut, "data: [DONE]")
							if provider == model.Anthropic {
								at = strings.Index(cut, `data: {"type":"message_delta"`)
							}
							return modeltest.Response(200, nil, io.NopCloser(io.MultiReader(strings.NewReader(cut[:at]), broken{}))), nil
						case 3:
							return modeltest.Response(401, nil, io.NopCloser(strings.NewReader("{}"))), nil
						}
						return modeltest.Response(200, nil, io.NopCloser(strings.NewReader(wire.text("good [1]")+wire.end("stop")))), nil
					})}})
			said, err := r.Chat(t.Context(), "", conversation)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Chat(t.Context(), "", conversation); err == nil {
				t.Error("no error")
			}
			var got collected
			result, err := r.Answer(t.Context(), "", request, got.emit)
			if err != nil || result.PromptTokens != 11 || result.Cost != 2*11+10*5 {
				t.Errorf("%+v, %v", result, err)
			}
			use := r.Uses()[0]
			if use.Model != "r" || use.Calls != 3 || use.Failures != 1 || use.Tries != 4 {
				t.Errorf("%+v", use)
			}
			if use.Cost != said.Usage.Cost+result.Cost || use.Tokens.Prompt != 1000+11+11 || said.Usage.PromptTokens != 1011 {
				t.Errorf("%+v, the conversation %+v", use, said.Usage)
			}
		})
	})
}

// broken is a connection that breaks.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
