package models

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/api"
	"docent/api/client"
	"docent/bench/lab"
	"docent/cmd/docent/config"
	"docent/internal/testing/need"
	"docent/model/modeltest"
	"docent/tests/harness"
)

// A testCollector is OpenTelemetry's collector, as a process of its own. It writes what it takes to a file.
type testCollector struct {
	url, file string
	end       func() // has it write down the rest, and end
}

// A testSpan is a span as the collector has written it.
type testSpan struct {
	TraceID      string `json:"traceId"`
	SpanID       string `json:"spanId"`
	ParentSpanID string `json:"parentSpanId"`
	Name         string `json:"name"`
	Attributes   []struct {
		Key   string                     `json:"key"`
		Value map[string]json.RawMessage `json:"value"`
	} `json:"attributes"`
	Events []struct {
		Name string `json:"name"`
	} `json:"events"`
	Links []struct {
		TraceID string `json:"traceId"`
	} `json:"links"`
	Status struct {
		Code int `json:"code"`
	} `json:"status"`
}

// said is an attribute's value as JSON.
func (s testSpan) said(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			for _, v := range a.Value {
				return string(v)
			}
		}
	}
	return ""
}

var collectorVersion = regexp.MustCompile(`(?m)^\s*go\.opentelemetry\.io/collector/otelcol (v\S+)`)

// newTestCollector starts the collector that scripts/install-collector builds.
func newTestCollector(t *testing.T) *testCollector {
	t.Helper()
	harness.SkipShort(t)
	mod, err := os.ReadFile("../../scripts/collector/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	version := collectorVersion.FindSubmatch(mod)
	cache, err := os.UserCacheDir()
	if err != nil || version == nil {
		t.Fatal("no version of the collector", err)
	}
	program := filepath.Join(cache, "docent-tests", "collector-"+string(version[1]))
	need.Peer(t, "a real collector of traces", "scripts/install-collector", program)
	address := harness.OwnAddress(t)
	dir := t.TempDir()
	c := &testCollector{url: "http://" + address, file: filepath.Join(dir, "spans.json")}
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, "receivers: {otlp: {protocols: {http: {endpoint: %q}}}}\n"+
		"exporters: {file: {path: %q, flush_interval: 50ms}}\n"+
		"service: {pipelines: {traces: {receivers: [otlp], exporters: [file]}}}\n", address, c.file), 0o600); err != nil {
		t.Fatal(err)
	}
	log := new(harness.LockedBuffer)
	cmd := exec.Command(program, "--config", config)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.end = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		c.end()
	})
	harness.Until(t, "the collector takes spans", func() bool {
		resp, err := http.Post(c.url+"/v1/traces", "application/json", strings.NewReader("{}"))
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return c
}

// spans are all that the collector has written, and how it stands in the file.
func (c *testCollector) spans(t *testing.T) (list []testSpan, raw string) {
	t.Helper()
	file, err := os.ReadFile(c.file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(file) {
		var batch struct {
			ResourceSpans []struct {
				ScopeSpans []struct {
					Spans []testSpan `json:"spans"`
				} `json:"scopeSpans"`
			} `json:"resourceSpans"`
		}
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // it is being written
		}
		if err := json.Unmarshal(line, &batch); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		for _, rs := range batch.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				list = append(list, ss.Spans...)
			}
		}
	}
	return list, string(file)
}

// withTrace sends requests as a part of a trace of the client's own.
type withTrace struct{ parent string }

func (w withTrace) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Traceparent", w.parent)
	return http.DefaultTransport.RoundTrip(req)
}

const (
	clientTrace, clientSpan     = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	strangerTrace, strangerSpan = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
)

// TestAQuestionAndAJobAreOneTraceEach asks a question and has a job done, over a kill of the server in its midst, and
// reads what a real collector has of both.
func TestAQuestionAndAJobAreOneTraceEach(t *testing.T) {
	t.Parallel()
	c := newTestCollector(t)
	harness.Setenv(t, "OTEL_BSP_SCHEDULE_DELAY", "100")
	harness.Setenv(t, "OTEL_SERVICE_NAME", "docs-of-the-harbour")
	harness.Setenv(t, "OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=testing")
	harness.Setenv(t, "COLLECTOR_HEADERS", "authorization=MARKER-header")
	s := harness.NewModelledServer(t, "openai", "log_format = \"json\"\n[tracing]\nendpoint = \""+c.url+"\"\nheaders_env = \"COLLECTOR_HEADERS\"\n",
		modeltest.Script{Match: "MARKER-job", Steps: []modeltest.Step{
			harness.Calling(harness.ReadCall("ferries.md")), harness.Calling(harness.EditCall("ferries.md", "four coins",
				"MARKER-edit coins")),
			{Hold: "third", Calls: []modeltest.Call{harness.EditCall("ferries.md", "pier two",
				"pier three")}}, harness.Calling(harness.FinishCall),
			harness.Calling(harness.FinishCall),
		}},
		modeltest.Script{Match: "MARKER-refused", Steps: []modeltest.Step{{Fault: "400", Times: 100}}},
		modeltest.Script{Match: "MARKER-question", Steps: []modeltest.Step{{Text: "Tickets cost four coins. MARKER-answer"}}})

	admin := s.Client(s.Project.Admin)
	admin.HTTP = &http.Client{Transport: withTrace{"00-" + clientTrace + "-" + clientSpan + "-01"}}
	reader := s.Client(s.Project.Assistant)
	reader.HTTP = &http.Client{Transport: withTrace{"00-" + strangerTrace + "-" + strangerSpan + "-01"}}
	if _, err := harness.Ask(t.Context(), reader, s.Project, "", "What do tickets cost? MARKER-question"); err != nil {
		t.Fatalf("%v\n%s", err, s.Log)
	}
	if _, err := harness.Ask(t.Context(), reader, s.Project, "", "What do tickets cost? MARKER-refused"); err != nil {
		t.Fatalf("%v\n%s", err, s.Log)
	}
	made, err := admin.CreateJob(t.Context(), s.Project.ID, client.CreateJob{Prompt: "Raise the price. MARKER-job"})
	if err != nil {
		t.Fatal(err)
	}
	s.Peer.Held("third")
	harness.Until(t, "what was done before the kill has been sent", func() bool {
		list, _ := c.spans(t)
		steps, requests := 0, 0
		for _, one := range list {
			switch {
			case one.TraceID == clientTrace && one.Name == "agent step":
				steps++
			case strings.HasPrefix(one.Name, "POST "): // the two questions and the job, of which all else is a part
				requests++
			}
		}
		return steps == 2 && requests >= 3
	})
	s.Kill()
	s.Peer.Release("third")
	s.Start()
	if job := s.Settled(made.ID); job.Status != api.JobCompleted {
		t.Fatalf("%+v\n%s", job, s.Log)
	}
	s.Stop()
	c.end() // all that it has been sent is in the file now

	list, raw := c.spans(t)
	for _, marker := range []string{"MARKER", "four coins", "Raise the price", "ferries.md", s.Project.Admin, s.Project.Assistant} {
		if strings.Contains(raw, marker) {
			t.Errorf("traces hold %q", marker)
		}
	}
	for _, about := range []string{"docs-of-the-harbour", "deployment.environment.name", "service.version"} {
		if !strings.Contains(raw, about) {
			t.Errorf("traces do not say %s", about)
		}
	}
	tree := newSpanTree(t, list, clientSpan)
	tree.has(clientTrace, map[string]string{
		"POST /v2/agent/:projectId/job": "", "job.Create": "POST /v2/agent/:projectId/job",
		"job": "POST /v2/agent/:projectId/job", "job editing": "job", "job publishing": "job",
		"agent step": "job editing", "take up the recorded steps": "job editing", "execute_tool read_file": "agent step|take up the recorded steps", "execute_tool finish": "agent step",
		"execute_tool edit_file": "agent step|take up the recorded steps",
		"look for the branch":    "job editing", "read the repository": "job editing",
		"publish": "job publishing", "push": "publish", "open the pull request": "publish",
	})
	if n := len(tree.named(clientTrace, "agent step")); n < 4 {
		t.Errorf("%d steps over both processes", n)
	}
	for _, name := range []string{"job", "job editing", "job publishing"} {
		if n := len(tree.named(clientTrace, name)); n != 1 {
			t.Errorf("%d spans %q", n, name)
		}
	}
	tree.asked()
	if !strings.Contains(s.Log.String(), `"trace_id":"`+clientTrace+`"`) {
		t.Errorf("no line of the log names the job's trace:\n%s", s.Log)
	}
}

// A spanTree is spans by what hangs under what.
type spanTree struct {
	t    *testing.T
	list []testSpan
	by   map[string]testSpan // by trace and id
}

// newSpanTree fails the test where a span has a parent that is not there, but for that of a client.
func newSpanTree(t *testing.T, list []testSpan, outside string) *spanTree {
	t.Helper()
	tree := &spanTree{t, list, map[string]testSpan{}}
	for _, s := range list {
		if twin, ok := tree.by[s.TraceID+s.SpanID]; ok {
			t.Errorf("two spans have one id: %q and %q", twin.Name, s.Name)
		}
		tree.by[s.TraceID+s.SpanID] = s
	}
	for _, s := range list {
		if s.ParentSpanID == "" || s.ParentSpanID == outside {
			continue
		}
		if _, ok := tree.by[s.TraceID+s.ParentSpanID]; !ok {
			t.Errorf("the span %q of trace %s has no parent", s.Name, s.TraceID)
		}
	}
	return tree
}

func (tree *spanTree) named(trace, name string) []testSpan {
	return slices.DeleteFunc(slices.Clone(tree.list), func(s testSpan) bool { return s.TraceID != trace || s.Name != name })
}

// has fails the test unless the trace has each of these spans, and all of a name under spans of that other name, or of one of several.
func (tree *spanTree) has(trace string, under map[string]string) {
	tree.t.Helper()
	for name, parent := range under {
		found := tree.named(trace, name)
		if len(found) == 0 {
			tree.t.Errorf("trace %s has no span %q", trace, name)
		}
		for _, s := range found {
			if is := tree.by[s.TraceID+s.ParentSpanID].Name; !slices.Contains(strings.Split(parent, "|"), is) {
				tree.t.Errorf("%q stands under %q, not under %q", name, is, parent)
			}
		}
	}
}

// asked looks at the traces of the two questions.
func (tree *spanTree) asked() {
	t := tree.t
	t.Helper()
	const request = "POST /discovery/v2/assistant/:domain/message"
	var roots []testSpan
	for _, s := range tree.list {
		if s.Name == request {
			roots = append(roots, s)
		}
	}
	if len(roots) != 2 {
		t.Fatalf("%d requests with questions", len(roots))
	}
	failed := 0
	for _, root := range roots {
		if root.TraceID == strangerTrace || len(root.Links) != 1 || root.Links[0].TraceID != strangerTrace {
			t.Errorf("a stranger's trace goes on, or is not linked: %+v", root)
		}
		if root.said("http.response.status_code") == "" || root.said("docent.thread") == "" {
			t.Errorf("%+v", root)
		}
		tree.has(root.TraceID, map[string]string{request: "", "thread.Ask": request, "turn": request, "answer": "turn",
			"retrieve": "turn", "retrieve by words": "retrieve", "wait for a slot": "turn"})
		tokens := false
		for _, s := range tree.list {
			if s.TraceID != root.TraceID || !strings.HasPrefix(s.Name, "chat ") {
				continue
			}
			if s.Status.Code == 2 && s.said("error.type") != "" {
				failed++
			}
			if s.said("gen_ai.usage.output_tokens") != "" && s.said("gen_ai.request.model") != "" {
				tokens = true
			}
		}
		appends := 0
		for _, s := range tree.named(root.TraceID, "journal append") {
			if s.said("docent.journal.group") != "" {
				appends++
			}
		}
		if !tokens || appends != 2 {
			t.Errorf("a question has %d appends, and tokens: %v", appends, tokens)
		}
	}
	if failed == 0 {
		t.Error("the call that the model's endpoint refused is no error in the trace")
	}
}

// TestACollectorThatFailsIsNobodysTrouble asks a question while the collector is away, silent or refusing.
func TestACollectorThatFailsIsNobodysTrouble(t *testing.T) {
	t.Parallel()
	away := harness.OwnAddress(t)
	released := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-released }))
	t.Cleanup(func() { close(released); silent.Close() })
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no", http.StatusForbidden)
	}))
	t.Cleanup(refusing.Close)
	for name, url := range map[string]string{"away": "http://" + away, "silent": silent.URL, "refusing": refusing.URL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			harness.Setenv(t, "OTEL_BSP_SCHEDULE_DELAY", "10")
			harness.Setenv(t, "OTEL_EXPORTER_OTLP_ENDPOINT", url)
			harness.Setenv(t, "OTEL_EXPORTER_OTLP_TIMEOUT", "1000")
			data := filepath.Join(t.TempDir(), "data")
			p := harness.NewProject(t, data, "harbour", harness.WriteFiles(t, harness.Harbour))
			s := harness.NewServer(t, data)
			for range 20 {
				q, err := harness.Ask(t.Context(), s.Client(p.Assistant), p, "", "What do tickets cost?")
				if err != nil || !strings.Contains(q.Answer, "four coins") {
					t.Fatalf("%v: %q\n%s", err, q.Answer, s.Log)
				}
			}
			harness.Until(t, "spans are counted that were not taken", func() bool {
				body, err := lab.Get(t.Context(), s.URL+"/metrics")
				return err == nil && regexp.MustCompile(`(?m)^docent_trace_spans_total\{result="failed"\} [1-9]`).MatchString(body)
			})
			began := time.Now()
			s.Stop()
			if took := time.Since(began); took > config.Default().DrainTimeout.Duration {
				t.Errorf("the stop took %v", took)
			}
			if n := strings.Count(s.Log.String(), "does not accept traces"); n != 1 {
				t.Errorf("the log says %d times that the collector takes nothing:\n%s", n, s.Log)
			}
		})
	}
}
