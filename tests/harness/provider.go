package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"testing"

	"docent/cmd/docent/config"
	"docent/model/modeltest"
)

// runAsProvider makes the test binary a stand-in for the providers of language models, so that it outlives the kills of
// the server.
const runAsProvider = "DOCENT_TEST_RUN_PROVIDER"

func playProvider() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := modeltest.Main(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A Provider is a stand-in for OpenAI and Anthropic as a process of its own.
type Provider struct {
	t   testing.TB
	URL string
}

// NewProvider starts a stand-in with scripts; arguments are those of modeltest.Main.
func NewProvider(t testing.TB, scripts []modeltest.Script, args ...string) *Provider {
	t.Helper()
	cmd := exec.Command(Self(t), args...)
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, config.EnvPrefix) {
			cmd.Env = append(cmd.Env, pair)
		}
	}
	cmd.Env = append(cmd.Env, runAsProvider+"=1")
	var log LockedBuffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the stand-in does not start: %v\n%s", err, log.String())
	}
	p := &Provider{t, strings.TrimSpace(line)}
	p.load(scripts...)
	return p
}

// Config is the [models.NAME] table of a model that the stand-in plays, in either provider's form.
func (p *Provider) Config(name, provider string) string {
	return fmt.Sprintf("[models.%s]\nprovider = %q\nbase_url = %q\nmodel = \"stand-in\"\nrewrite = \"off\"\n", name, provider, p.URL+"/v1")
}

// load replaces the scripts.
func (p *Provider) load(scripts ...modeltest.Script) {
	p.t.Helper()
	p.call(http.MethodPut, "/scripts", scripts, nil)
}

// Asked lists the requests since the scripts were loaded.
func (p *Provider) Asked() []modeltest.Asked {
	p.t.Helper()
	var list []modeltest.Asked
	p.call(http.MethodGet, "/requests", nil, &list)
	return list
}

// Held returns when a request has come to a step with this word in Hold.
func (p *Provider) Held(word string) {
	p.t.Helper()
	p.call(http.MethodGet, "/held/"+word, nil, nil)
}

// Release lets the requests that wait for this word go on.
func (p *Provider) Release(word string) {
	p.t.Helper()
	p.call(http.MethodPost, "/release/"+word, nil, nil)
}

func (p *Provider) call(method, path string, body, into any) {
	p.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.URL+path, bytes.NewReader(data))
	if err != nil {
		p.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		p.t.Fatalf("%s %s: %s, %v\n%s", method, path, resp.Status, err, page)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(page, into); err != nil {
		p.t.Fatal(err)
	}
}
