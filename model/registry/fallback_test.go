package registry_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"docent/model"
	"docent/model/modeltest"
	"docent/model/registry"
	"docent/model/remote"
)

var errRefused = &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1},
	Err: syscall.ECONNREFUSED}

func status(code int, after string) modeltest.Transport {
	return func(*http.Request) (*http.Response, error) {
		return modeltest.Response(code, map[string]string{"Retry-After": after},
			io.NopCloser(strings.NewReader(`{"error":{"message":"no"}}`))), nil
	}
}

// A model is down in many ways. In each the built-in one may answer, and nobody waits for longer than a reader does.
func TestTheBuiltinModelAnswersForOneThatIsDown(t *testing.T) {
	silent := modeltest.Transport(func(req *http.Request) (*http.Response, error) {
		<-req.Context().Done()
		return nil, req.Context().Err()
	})
	for name, down := range map[string]struct {
		transport modeltest.Transport
		change    func(*registry.Named)
		asked     int // questions before the one that is measured
		within    time.Duration
	}{
		"nothing listens": {transport: func(*http.Request) (*http.Response, error) { return nil, errRefused },
			within: 5 * time.Second},
		"nothing listens for long": {transport: func(*http.Request) (*http.Response, error) { return nil, errRefused },
			asked: 2},
		"server error": {transport: status(500, ""), within: 5 * time.Second},
		"server error, many tries": {transport: status(500, ""), change: func(n *registry.Named) { n.Remote.Attempts = 50 },
			within: 5 * time.Second},
		"overloaded":                 {transport: status(529, "2"), within: 5 * time.Second},
		"asked too often":            {transport: status(429, "4"), within: 5 * time.Second},
		"asked too often, come late": {transport: status(429, "20")},
		"wrong key":                  {transport: status(401, "")},
		"not allowed":                {transport: status(403, "")},
		"unknown model":              {transport: status(404, "")},
		"silent":                     {transport: silent, within: 30 * time.Second},
		"silent, as configured": {transport: silent,
			change: func(n *registry.Named) { n.Remote.FallbackAfter = 3 * time.Second }, within: 3 * time.Second},
		"silent, idle is shorter": {transport: silent, change: func(n *registry.Named) { n.Remote.Idle = 7 * time.Second },
			within: 7 * time.Second},
		"silent after its head": {transport: func(req *http.Request) (*http.Response, error) {
			return modeltest.Response(200, nil, modeltest.Stalled{Reader: strings.NewReader(""), Ctx: req.Context()}), nil
		}, within: 30 * time.Second},
		"no stream": {transport: func(*http.Request) (*http.Response, error) {
			r := modeltest.Response(200, nil, io.NopCloser(strings.NewReader("<html>")))
			r.Header.Set("Content-Type", "text/html")
			return r, nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			eachProvider(t, func(t *testing.T, provider string) {
				synctest.Test(t, func(t *testing.T) {
					n := registry.Named{Name: "r", Provider: provider,
						Remote: remote.Config{BaseURL: "http://models.example:8000/v1", Model: "m", Key: modeltest.Key(secret),
							Transport: down.transport}}
					if down.change != nil {
						down.change(&n)
					}
					r := open(t, n)
					var got collected
					for range down.asked {
						_, _ = r.Answer(t.Context(), "", request, got.emit)
					}
					begin := time.Now()
					_, err := r.Answer(t.Context(), "", request, got.emit)
					if took := time.Since(begin); took > down.within {
						t.Errorf("it took %v until the error was told", took)
					}
					if err == nil || got.text != "" || !r.FallsBack("", err) {
						t.Fatalf("%v after %q", err, got.text)
					}
					for _, part := range []string{"model r", "models.example:8000"} {
						if !strings.Contains(err.Error(), part) {
							t.Errorf("%v does not name %s", err, part)
						}
					}
					if strings.HasPrefix(name, "nothing listens") && !strings.Contains(err.Error(), "connection refused") {
						t.Errorf("%v does not tell the cause", err)
					}
					result, err := r.Fallback(t.Context(), "", request, got.emit)
					if err != nil || result.Model != model.Builtin || result.FallbackFor != "r" || !result.Answered {
						t.Errorf("%+v, %v", result, err)
					}
					if text, marked := strings.CutPrefix(got.text, model.Instead("en")); !marked || text == "" {
						t.Errorf("answered %q", got.text)
					}
				})
			})
		})
	}
}

// The notice is in the question's language, as the rest is that an answer says of itself, and is no part of what was said.
func TestWhatAnotherModelAnswersSaysSoInTheReadersLanguage(t *testing.T) {
	r := open(t, registry.Named{Name: "r", Provider: model.OpenAI, Remote: remote.Config{Model: "m", Key: modeltest.Key(secret)}})
	var got collected
	_, err := r.Fallback(t.Context(), "", model.Request{Question: "Wie ändere ich den Port des Servers?", Passages: []model.Passage{{Path: "a.md",
		Title: "Server", Text: "Der Port des Servers steht in `server.port`. Sie können ihn dort ändern.", Score: 0.7}}}, got.emit)
	if said := model.Instead("de"); err != nil || said == model.Instead("en") || !strings.HasPrefix(got.text, said) || model.WithoutInstead(got.text) != got.text[len(said):] {
		t.Errorf("%v, %q", err, got.text)
	}
}

func TestWhatTheBuiltinModelDoesNotAnswerFor(t *testing.T) {
	refuses := modeltest.Transport(func(*http.Request) (*http.Response, error) { return nil, errRefused })
	n := registry.Named{Name: "r", Provider: model.OpenAI,
		Remote: remote.Config{Model: "m", Key: modeltest.Key(secret), Attempts: 1, Transport: refuses}}
	strict, declines := n, n
	strict.Name, strict.Remote.NoFallback = "strict", true
	declines.Name, declines.Remote.Transport = "declines",
		modeltest.Transport(func(*http.Request) (*http.Response, error) {
			return modeltest.Response(200,
				nil, io.NopCloser(strings.NewReader(
					`data: {"choices":[{"index":0,"delta":{"refusal":"I will not."},"finish_reason":"stop"}]}`+
						"\n\ndata: [DONE]\n\n"))), nil
		})
	r, err := registry.New(registry.Config{Models: []registry.Named{n, strict, declines}, Default: "r"})
	if err != nil {
		t.Fatal(err)
	}
	var got collected
	for name, falls := range map[string]bool{"r": true, "": true, "strict": false, "declines": false, "removed": true} {
		_, err := r.Answer(t.Context(), name, request, got.emit)
		if err == nil || r.FallsBack(name, err) != falls {
			t.Errorf("%q: %v, answered by the built-in model: %v", name, err, !falls)
		}
	}
	full := errors.New("the log is full")
	if _, err := r.Answer(t.Context(), model.Builtin, request, func(model.Delta) error { return full }); !errors.Is(err,
		full) || r.FallsBack(model.Builtin, err) {
		t.Errorf("an error of the asker's own: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Answer(ctx, "r", request, got.emit); !errors.Is(err, context.Canceled) || r.FallsBack("r", err) {
		t.Errorf("the asker's own end: %v", err)
	}
}

func TestFallbacksAreCounted(t *testing.T) {
	n := registry.Named{Name: "r", Provider: model.OpenAI, Remote: remote.Config{Model: "m", Key: modeltest.Key(secret)}}
	r, err := registry.New(registry.Config{Models: []registry.Named{n}, Default: "r",
		Aliases: map[string]string{"quick": "r", "any": ""}})
	if err != nil {
		t.Fatal(err)
	}
	var got collected
	for _, name := range []string{"r", "", "quick", "any", "removed"} {
		result, err := r.Fallback(t.Context(), name, request, got.emit)
		if want := map[bool]string{true: "removed", false: "r"}[name == "removed"]; err != nil || result.FallbackFor != want {
			t.Errorf("%q: %+v, %v", name, result, err)
		}
	}
	metrics := prometheus.NewPedanticRegistry()
	metrics.MustRegister(r)
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]float64{}
	for _, f := range families {
		if f.GetName() == "docent_model_fallbacks_total" {
			for _, m := range f.GetMetric() {
				counted[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	if len(counted) != 2 || counted["r"] != 4 || counted[""] != 1 {
		t.Errorf("counted %v", counted)
	}
}
