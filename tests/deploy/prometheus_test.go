package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/internal/testing/need"
	"docent/model/modeltest"
	"docent/tests/harness"
)

// prometheusTools are the programs that judge what monitoring is given.
func prometheusTools(t testing.TB) {
	t.Helper()
	need.Peer(t, "a real Prometheus", "scripts/install-test-needs", "prometheus", "promtool")
}

func promtool(t testing.TB, stdin io.Reader, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "promtool", args...)
	cmd.Stdin = stdin
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%.6000s", strings.Join(args, " "), err, out)
	}
}

// The rules are sound, and each alert fires where it has to and does not where it must not.
func TestAlertsFireWhenTheyShould(t *testing.T) {
	t.Parallel()
	prometheusTools(t)
	dir := filepath.Join("..", "..", "deploy", "prometheus")
	promtool(t, nil, "check", "config", filepath.Join(dir, "prometheus.yml"))
	promtool(t, nil, "test", "rules", filepath.Join(dir, "alerts_test.yaml"), filepath.Join(dir, "alerts_days_test.yaml"))
}

// A scraped server under load: what Prometheus makes of it.
type scraped struct {
	t          testing.TB
	operator   string // address of the operator's listener
	prometheus string
	server     *harness.Server
}

// get asks Prometheus's API.
func (s *scraped) get(path string, query url.Values, into any) error {
	resp, err := http.Get(s.prometheus + path + "?" + query.Encode())
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Status != "success" {
		return errors.New(answer.Error)
	}
	return json.Unmarshal(answer.Data, into)
}

// query counts the results of a query that are numbers.
func (s *scraped) query(expr string) (int, error) {
	var data struct {
		ResultType string
		Result     []struct{ Value [2]any }
	}
	if err := s.get("/api/v1/query", url.Values{"query": {expr}}, &data); err != nil {
		return 0, err
	}
	n := 0
	for _, r := range data.Result {
		if v, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64); err == nil && v == v {
			n++
		}
	}
	return n, nil
}

// newScraped starts a docent with everything that has metrics, a Prometheus that scrapes it with the rules of deploy/,
// and load until the test ends.
func newScraped(t *testing.T) *scraped {
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	t.Cleanup(collector.Close)
	peer := harness.NewProvider(t, []modeltest.Script{
		{Match: "breaks", Steps: []modeltest.Step{{Fault: "500", Times: 1 << 20}}},
		{Steps: []modeltest.Step{{Text: "The ferry to the island leaves every hour from pier two. [1]"}}},
	})
	operator := harness.OwnAddress(t)
	config := filepath.Join(t.TempDir(), "docent.toml")
	text := fmt.Sprintf("operator_listen = %q\npoll_interval = \"1s\"\n[tracing]\nendpoint = %q\n", operator, collector.URL) +
		peer.Config("writer", "openai") + "prompt_price = 3.0\ncompletion_price = 15.0\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(t.TempDir(), "data")
	plain := harness.NewProject(t, data, "plain", harness.WriteFiles(t, harness.Harbour), harness.Unlimited...)
	written := harness.NewProject(t, data, "written", harness.WriteFiles(t, harness.Harbour), append([]string{"--config", config, "--model", "writer"}, harness.Unlimited...)...)
	s := &scraped{t: t, operator: operator, server: harness.NewServer(t, data, "--config", config)}
	s.startPrometheus()

	ctx, cancel := context.WithCancel(t.Context())
	var load sync.WaitGroup
	t.Cleanup(func() { cancel(); load.Wait() })
	load.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			for _, p := range []harness.Project{plain, written} {
				text := "What do tickets cost?"
				if n%7 == 3 {
					text = "What breaks?"
				}
				_, _ = harness.Ask(ctx, s.server.Client(p.Assistant), p, "", text)
				s.send(ctx, p.Assistant, "/v1/search/"+p.Domain, `{"query":"ferry"}`)
			}
			s.send(ctx, "nonsense", "/v1/search/"+plain.Domain, `{"query":"ferry"}`)
			if n%5 == 0 {
				s.send(ctx, plain.Admin, "/v2/agent/plain/job", fmt.Sprintf(
					`{"prompt":"Replace \"four coins\" with \"%d coins\" on all pages."}`, n))
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	return s
}

// send posts as load: what becomes of it is for the metrics to say.
func (s *scraped) send(ctx context.Context, key, path, body string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.server.URL+path, strings.NewReader(body))
	if err != nil {
		return
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	if resp, err := http.DefaultClient.Do(req); err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}

func (s *scraped) startPrometheus() {
	s.t.Helper()
	dir := s.t.TempDir()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "prometheus", "prometheus.yml"))
	if err != nil {
		s.t.Fatal(err)
	}
	rules, err := filepath.Abs(filepath.Join("..", "..", "deploy", "prometheus", "alerts.yaml"))
	if err != nil {
		s.t.Fatal(err)
	}
	config := string(text)
	for old, with := range map[string]string{"127.0.0.1:9464": s.operator, "- alerts.yaml": "- " + rules,
		"scrape_interval: 15s": "scrape_interval: 1s", "evaluation_interval: 15s": "evaluation_interval: 1s"} {
		if !strings.Contains(config, old) {
			s.t.Fatalf("prometheus.yml has no %q", old)
		}
		config = strings.ReplaceAll(config, old, with)
	}
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		s.t.Fatal(err)
	}
	address := harness.OwnAddress(s.t)
	s.prometheus = "http://" + address
	cmd := exec.Command("prometheus", "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address, "--enable-feature=exemplar-storage", "--log.level=warn")
	var log harness.LockedBuffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if s.t.Failed() {
			s.t.Logf("prometheus: %.3000s", &log)
		}
	})
}

// Every query of the dashboard, and the recorded ones of the rules, has a result on a real Prometheus that scrapes a real
// server; latencies have exemplars, which are traces; and what the server shows keeps to Prometheus's conventions.
func TestTheDashboardShowsARunningServer(t *testing.T) {
	prometheusTools(t)
	harness.SkipShort(t)
	s := newScraped(t)
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var shown struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &shown); err != nil {
		t.Fatal(err)
	}
	queries := map[string]string{}
	for _, p := range shown.Panels {
		if slices.ContainsFunc(panelsOfNodes(t), func(n panel) bool { return n.title == p.Title }) {
			continue // there is one server: TestNodesAreUpgradedUnderOpenStreams looks at theirs
		}
		for _, target := range p.Targets {
			expr := strings.NewReplacer("$__rate_interval", "20s", "$instance", ".+").Replace(target.Expr)
			queries[expr] = p.Title
		}
	}
	if len(queries) < 50 {
		t.Fatalf("%d queries", len(queries))
	}
	rules, err := os.ReadFile(filepath.Join("..", "..", "deploy", "prometheus", "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`record: (\S+)`).FindAllStringSubmatch(string(rules), -1) {
		queries[m[1]] = "recorded"
	}
	deadline := time.Now().Add(5 * time.Minute)
	for expr, title := range queries {
		for {
			n, err := s.query(expr)
			if n > 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Errorf("%s has no result: %s (%v)", title, expr, err)
				break
			}
			time.Sleep(200 * time.Millisecond)
		}
	}
	for _, series := range []string{"docent_answer_first_text_seconds_bucket", "docent_answer_duration_seconds_bucket",
		"docent_http_request_duration_seconds_bucket", "docent_model_request_duration_seconds_bucket"} {
		var found []struct {
			Exemplars []struct{ Labels map[string]string }
		}
		err := s.get("/api/v1/query_exemplars", url.Values{"query": {series},
			"start": {strconv.FormatInt(time.Now().Add(-time.Hour).Unix(), 10)}, "end": {strconv.FormatInt(time.Now().Unix(), 10)}}, &found)
		if err != nil || len(found) == 0 || !regexp.MustCompile("^[0-9a-f]{32}$").MatchString(found[0].Exemplars[0].Labels["trace_id"]) {
			t.Errorf("%s has no exemplar that is a trace: %v, %v", series, found, err)
		}
	}
	status, body := harness.Served(t, http.DefaultClient, "http://"+s.operator+"/metrics")
	if status != http.StatusOK {
		t.Fatalf("%d %.300s", status, body)
	}
	promtool(t, strings.NewReader(body), "check", "metrics")
	checkMetrics(t, body)
}

// checkMetrics holds what a server shows against the page that documents it, and its labels against what nobody but the
// operator chooses.
func checkMetrics(t *testing.T, text string) {
	t.Helper()
	labels := map[string]string{"le": `[0-9.e+-]+|\+Inf`, "quantile": "[0-9.]+", "class": "[a-z]+", "route": "unknown|/[^?%]*",
		"method": "[A-Z]+|other", "status": "[0-9]{3}", "form": "v1|v2|job|openai|responses|ag-ui", "task": "[a-z]+", "how": "[a-z]+", "reason": "[a-z_]+", "result": "[a-z_ ]+",
		"failed": "true|false", "state": "[a-z]+", "kind": "[a-z_]+", "model": "writer|", "models": "writer", "endpoint": "http://[0-9.:]+",
		"cache": "[a-z]+", "of": "[a-z]+", "version": ".*", "revision": ".*", "goversion": ".*", "vector": "[a-z]+"}
	if families := harness.CheckDocumented(t, text); families < 60 {
		t.Errorf("%d families of metrics", families)
	}
	series := 0
	for _, m := range regexp.MustCompile(`(?m)^(docent_\w+)\{(.*)\} \S+$`).FindAllStringSubmatch(text, -1) {
		series++
		for _, l := range regexp.MustCompile(`(\w+)="([^"]*)"`).FindAllStringSubmatch(m[2], -1) {
			if may, ok := labels[l[1]]; !ok || !regexp.MustCompile("^("+may+")$").MatchString(l[2]) {
				t.Errorf("%s has a label %s=%q: bound what it may be, or leave it out", m[1], l[1], l[2])
			}
		}
	}
	if series > 3000 {
		t.Errorf("%d series of one server", series)
	}
}
