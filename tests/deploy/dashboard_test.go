package deploy

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"docent/tests/harness"
)

const dashboardFile = "../../deploy/grafana/docent.json"

// A panel of the dashboard: what it is called, its unit in Grafana's words, what it tells, and its queries with the
// legends of their lines. I stands for the choice of instances, R for the range of rates.
type panel struct {
	title, unit, tells string
	queries            []string // expression, legend, expression, legend …
}

// The dashboard, row by row: go test ./tests/deploy -run Dashboard -update makes deploy/grafana/docent.json of it.
var dashboard = []struct {
	row    string
	panels []panel
}{
	{"Readers", []panel{
		{"Answers", "reqps", "Answers a second by how they ended. unanswered: the documentation has no answer, see the console's gaps.", []string{
			`sum by (result) (rate(docent_answers_total{I}[R]))`, "{{result}}"}},
		{"Time to the first text", "s", "From a question's arrival until the first text of its answer is written to the reader. Dots are traces.", append(
			quantiles(`docent_answer_first_text_seconds_bucket{I}`, "", ""), `vector(5)`, "objective: 95 % within")},
		{"Time to the whole answer", "s", "From a question's arrival until the end of its answer is written.", quantiles(`docent_answer_duration_seconds_bucket{I}`, "", "")},
		{"Errors of readers' requests", "percentunit", "Part of questions, searches and tool calls that were refused or failed (5xx). The objective is below 0.5 %.", []string{
			`(sum(rate(docent_http_requests_total{I,class=~"assistant|search|tools",status=~"5.."}[R])) or vector(0)) / sum(rate(docent_http_requests_total{I,class=~"assistant|search|tools"}[R]))`, "errors"}},
		{"Search", "s", "Time of searches, pages and ratings.", quantiles(`docent_http_request_duration_seconds_bucket{I,class="search"}`, "", "")},
		{"Streams", "short", "Open streams, by form: the assistant's v1 and v2, and those that follow a job.", []string{
			`sum by (form) (docent_streams_open{I})`, "{{form}}"}},
		{"Ends of streams and resumes", "ops", "Streams a second that ended otherwise than finished, and answers that were taken up again. stalled: the reader took nothing in.", []string{
			`sum by (how) (rate(docent_streams_ended_total{I,how!="finished"}[R]))`, "{{how}}",
			`sum(rate(docent_stream_resumes_total{I,result="found"}[R]))`, "resumed"}},
	}},
	{"Load and refusals", []panel{
		{"Requests", "reqps", "Requests a second by the class of their route.", []string{
			`sum by (class) (rate(docent_http_requests_total{I,class!="probe"}[R]))`, "{{class}}"}},
		{"Refusals", "reqps", "Requests a second that were refused, by reason. queue: the answer would have begun too late.", []string{
			`sum by (reason) (rate(docent_refused_total{I}[R]))`, "{{reason}}"}},
		{"Queue", "s", "In which time work that comes now is expected to be answered. Beyond two seconds it is refused.", []string{
			`max by (instance) (docent_queue_seconds{I})`, "{{instance}}"}},
		{"Waiting and worked on", "short", "Questions, searches and jobs that wait for this machine, and that it works on.", []string{
			`sum(docent_queue_waiting{I})`, "waiting", `sum(docent_queue_working{I})`, "working",
			`sum(docent_http_requests_in_flight{I})`, "requests in flight"}},
	}},
	{"Jobs", []panel{
		{"Ends of instructions", "ops", "Instructions of jobs a second, by what became of them. misconfigured: the code host refuses the project.", []string{
			`sum by (result) (rate(docent_jobs_ended_total{I}[R]))`, "{{result}}"}},
		{"Duration", "s", "From an instruction's being given until its end, those that failed apart.", []string{
			`histogram_quantile(0.5, sum by (le) (rate(docent_job_duration_seconds_bucket{I,failed="false"}[R])))`, "half",
			`histogram_quantile(0.95, sum by (le) (rate(docent_job_duration_seconds_bucket{I,failed="false"}[R])))`, "95 %"}},
		{"Running and waiting", "short", "Runs of jobs, and answers that are being written.", []string{
			`sum(docent_actors_jobs_running{I})`, "jobs running", `sum(docent_actors_jobs_waiting{I})`, "jobs waiting",
			`sum(docent_actors_turns_running{I})`, "answers being written", `sum(docent_actors_turns_waiting{I})`, "answers waiting"}},
		{"Longest wait", "s", "How long the job or answer has waited that has waited longest for its turn.", []string{
			`max(docent_jobs_oldest_waiting_seconds{I})`, "job", `max(docent_answers_oldest_waiting_seconds{I})`, "answer"}},
		{"Actors", "short", "Should stay at 0: quarantined jobs and threads, and failures and restarts within an hour.", []string{
			`sum(docent_actors_quarantined{I})`, "quarantined", `sum(increase(docent_actors_failures_total{I}[1h]))`, "failures",
			`sum(increase(docent_actors_restarts_total{I}[1h]))`, "restarts"}},
	}},
	{"Models and cost", []panel{
		{"First text of a model", "s", "Time from a request to the endpoint until the first text of its reply, for 95 % of requests.", []string{
			`histogram_quantile(0.95, sum by (le, model) (rate(docent_model_first_text_seconds_bucket{I}[R])))`, "{{model}}"}},
		{"Whole reply of a model", "s", "Time of a request to the endpoint until the end of its reply, for 95 % of requests.", []string{
			`histogram_quantile(0.95, sum by (le, model) (rate(docent_model_request_duration_seconds_bucket{I}[R])))`, "{{model}}"}},
		{"Calls and failures", "ops", "Calls of each model a second, those that failed, and answers that the built-in model gave in its place.", []string{
			`sum by (model) (rate(docent_model_calls_total{I}[R]))`, "{{model}}",
			`sum by (model) (rate(docent_model_failures_total{I}[R]))`, "{{model}} failed",
			`sum by (model) (rate(docent_model_fallbacks_total{I}[R]))`, "{{model}} replaced"}},
		{"Circuits", "short", "1 while an endpoint is left alone because it failed repeatedly, 0.5 while one call tries it.", []string{
			`max by (endpoint, models) (docent_model_endpoint_open{I})`, "{{endpoint}} {{models}}"}},
		{"Tokens", "short", "Tokens a second, by model and kind. Cached ones are among those of prompts.", []string{
			`sum by (model, kind) (rate(docent_model_tokens_total{I}[R]))`, "{{model}} {{kind}}"}},
		{"Cost of an hour", "currencyUSD", "What the tokens cost by the configured prices, as an hour at this rate.", []string{
			`sum by (model) (rate(docent_model_cost_dollars_total{I}[R])) * 3600`, "{{model}}"}},
	}},
	{"Retrieval", []panel{
		{"Sources", "short", "Sources that were read since the start. Of failing ones readers get what was read before.", []string{
			`sum by (kind, state) (docent_sources{I})`, "{{kind}} {{state}}"}},
		{"Age of what was read", "s", "How long ago the source of each kind was read for which that is longest.", []string{
			`time() - min by (kind) (docent_source_oldest_read_timestamp_seconds{I})`, "{{kind}}"}},
		{"Caches of searches", "percentunit", "Part of look-ups that were answered from memory. An update of the index begins afresh.", []string{
			`sum by (cache) (rate(docent_search_lookups_total{I,result!="miss"}[R])) / sum by (cache) (rate(docent_search_lookups_total{I}[R]))`, "{{cache}}"}},
		{"Indexes", "bytes", "Memory of open indexes, with what they remember.", []string{
			`sum by (instance) (docent_search_memory_bytes{I})`, "{{instance}}"}},
		{"Searches by meaning", "ops", "Searches a second that had a vector, remembered their result, or went by words alone; 0 without embeddings.", []string{
			`sum by (result) (rate(docent_search_meaning_questions_total{I}[R])) or vector(0)`, "{{result}}",
			`sum(docent_search_meaning_sections{I,vector="missing"}) or vector(0)`, "sections without a vector"}},
	}},
	{"Journal and disk", []panel{
		{"Appends and commits", "s", "Until an append is on disk, and one commit with its syncs, for 99 %. They follow the disk.", []string{
			`histogram_quantile(0.99, sum by (le) (rate(docent_journal_append_seconds_bucket{I}[R])))`, "append",
			`histogram_quantile(0.99, sum by (le) (rate(docent_journal_commit_seconds_bucket{I}[R])))`, "commit"}},
		{"Appends", "ops", "Appends a second by what became of them.", []string{
			`sum by (result) (rate(docent_journal_appends_total{I}[R]))`, "{{result}}"}},
		{"Journal's file", "bytes", "Size of the journal, and what of it is used again before it grows.", []string{
			`sum(docent_journal_file_bytes{I})`, "file", `sum(docent_journal_free_bytes{I})`, "free in it"}},
		{"Free on the disk", "percentunit", "Part of the disk of the data directory that is free.", []string{
			`docent_disk_free_bytes{I} / docent_disk_size_bytes{I}`, "{{instance}}"}},
		{"Cannot be written to", "short", "1 while nothing can be written: full, read-only or broken.", []string{
			`max by (instance) (docent_journal_unavailable{I})`, "{{instance}}"}},
		{"Age of the last backup", "s", "Since the last backup was begun that was completed. Beyond all measure where there was none.", []string{
			`time() - docent_backup_last_success_timestamp_seconds{I}`, "{{instance}}"}},
		{"Webhooks", "short", "Outgoing webhooks by state, and those that have events which were not taken yet.", []string{
			`sum by (state) (docent_webhooks{I})`, "{{state}}", `sum(docent_webhooks_waiting{I})`, "with events that wait"}},
	}},
	{rowOfNodes, []panel{
		{"Nodes", "short", "Nodes that are there, as each of them sees it.", []string{`max by (instance) (docent_cluster_nodes{I})`, "{{instance}}"}},
		{"Shards", "short", "What each node runs. It sums up to 256, and to less for the seconds in which a node is missing.", []string{
			`sum by (instance) (docent_cluster_shards{I})`, "{{instance}}"}},
		{"Last sign of life", "s", "Since the last beat of a node that arrived in the database. Above 2.5 s the node answers 503.", []string{
			`max by (instance) (docent_cluster_last_beat_seconds{I})`, "{{instance}}"}},
		{"Nodes given up", "short", "Nodes that were given up because they showed no life, by the one that did it.", []string{
			`sum by (instance) (increase(docent_cluster_takeovers_total{I}[R]))`, "{{instance}}"}},
		{"Forwarded requests", "reqps", "Requests a second that were sent to the node that runs their job or thread, by what became of them.", []string{
			`sum by (outcome) (rate(docent_forwarded_requests_total{I}[R]))`, "{{outcome}}"}},
		{"Forwarded and open", "short", "Requests, streams among them, that other nodes answer now through this one.", []string{
			`sum by (instance) (docent_forwarded_open{I})`, "{{instance}}"}},
	}},
	{"Runtime", []panel{
		{"Processors", "short", "Processors in use.", []string{`sum by (instance) (rate(process_cpu_seconds_total{I}[R]))`, "{{instance}}"}},
		{"Memory", "bytes", "Resident memory; of it what stands for no file; and what Go's heap holds.", []string{
			`sum(process_resident_memory_bytes{I})`, "resident", `sum(docent_anonymous_memory_bytes{I})`, "anonymous",
			`sum(go_memstats_heap_inuse_bytes{I})`, "heap"}},
		{"Goroutines and actors", "short", "Goroutines, and actors that are awake.", []string{
			`sum(go_goroutines{I})`, "goroutines", `sum(docent_actors_live{I})`, "actors awake"}},
		{"Open files", "percentunit", "Part of the file descriptors that the process may have.", []string{
			`process_open_fds{I} / process_max_fds{I}`, "{{instance}}"}},
		{"Uptime", "s", "Since the process started. The legend has its version.", []string{
			`(time() - process_start_time_seconds{I}) * on (instance, job) group_left (version) docent_build_info{I}`, "{{instance}} {{version}}"}},
	}},
}

// quantiles are the queries of a latency's panel.
func quantiles(series, by, legend string) []string {
	var out []string
	for _, q := range []struct{ q, name string }{{"0.5", "half"}, {"0.95", "95 %"}, {"0.99", "99 %"}} {
		out = append(out, `histogram_quantile(`+q.q+`, sum by (le`+by+`) (rate(`+series+`[R])))`, legend+q.name)
	}
	return out
}

type jsonObject = map[string]any

// made is the dashboard as Grafana has it.
func madeDashboard() []byte {
	source := jsonObject{"type": "prometheus", "uid": "${datasource}"}
	var panels []jsonObject
	id, y := 0, 0
	for _, r := range dashboard {
		id++
		panels = append(panels, jsonObject{"type": "row", "id": id, "title": r.row, "collapsed": false, "panels": []any{},
			"gridPos": jsonObject{"h": 1, "w": 24, "x": 0, "y": y}})
		y++
		for i, p := range r.panels {
			id++
			var targets []jsonObject
			for q := 0; q < len(p.queries); q += 2 {
				targets = append(targets, jsonObject{"refId": string(rune('A' + q/2)), "datasource": source, "editorMode": "code",
					"expr": spelled(p.queries[q]), "legendFormat": p.queries[q+1], "range": true,
					"exemplar": strings.Contains(p.queries[q], "_bucket")})
			}
			panels = append(panels, jsonObject{"type": "timeseries", "id": id, "title": p.title, "description": p.tells,
				"datasource": source, "targets": targets,
				"gridPos": jsonObject{"h": 8, "w": 8, "x": i % 3 * 8, "y": y + i/3*8},
				"fieldConfig": jsonObject{"overrides": []any{}, "defaults": jsonObject{"unit": p.unit, "min": 0,
					"custom": jsonObject{"drawStyle": "line", "fillOpacity": 8, "lineWidth": 1, "showPoints": "never"}}},
				"options": jsonObject{"legend": jsonObject{"displayMode": "list", "placement": "bottom", "showLegend": true},
					"tooltip": jsonObject{"mode": "multi", "sort": "desc"}}})
		}
		y += (len(r.panels) + 2) / 3 * 8
	}
	whole := jsonObject{
		"title": "Docent", "uid": "docent", "description": "The status of a Docent server: its readers, load, jobs, models, retrieval, journal and disk.",
		"tags": []string{"docent"}, "schemaVersion": 39, "version": 1, "editable": true, "graphTooltip": 1, "timezone": "browser",
		"refresh": "30s", "time": jsonObject{"from": "now-6h", "to": "now"}, "timepicker": jsonObject{}, "links": []any{}, "id": nil,
		"annotations": jsonObject{"list": []jsonObject{{"name": "Starts", "enable": true, "iconColor": "blue", "datasource": source,
			"expr": spelled(`changes(process_start_time_seconds{I}[1m]) > 0`), "titleFormat": "{{instance}} started"}}},
		"templating": jsonObject{"list": []jsonObject{
			{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "current": jsonObject{}, "hide": 0},
			{"name": "instance", "label": "Instance", "type": "query", "datasource": source, "multi": true, "includeAll": true,
				"allValue": ".+", "refresh": 2, "sort": 1, "hide": 0, "current": jsonObject{},
				"query":      jsonObject{"query": "label_values(docent_build_info, instance)", "refId": "instances"},
				"definition": "label_values(docent_build_info, instance)"},
		}},
		"panels": panels,
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(whole); err != nil {
		panic(err)
	}
	return out.Bytes()
}

var selector = regexp.MustCompile(`\{I\b`)

func spelled(query string) string {
	return strings.ReplaceAll(selector.ReplaceAllString(query, `{instance=~"$$instance"`), "[R]", "[$__rate_interval]")
}

// The dashboard is the one of the table above, and every panel says what it tells.
func TestTheDashboardIsTheOneOfTheTable(t *testing.T) {
	t.Parallel()
	want := madeDashboard()
	if *harness.Update {
		if err := os.WriteFile(dashboardFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(dashboardFile); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the table says: go test ./tests/deploy -run Dashboard -update (%v)", dashboardFile, err)
	}
	var titles []string
	for _, r := range dashboard {
		for _, p := range r.panels {
			titles = append(titles, p.title)
			if p.unit == "" || !strings.HasSuffix(p.tells, ".") || len(p.queries) == 0 || len(p.queries)%2 != 0 {
				t.Errorf("%s / %s lacks a unit, a sentence or a legend", r.row, p.title)
			}
			for q := 0; q < len(p.queries); q += 2 {
				if !strings.Contains(p.queries[q], "{I") && p.queries[q] != "vector(5)" {
					t.Errorf("%s / %s does not keep to the chosen instances: %s", r.row, p.title, p.queries[q])
				}
			}
		}
	}
	if slices.Sort(titles); len(slices.Compact(slices.Clone(titles))) != len(titles) {
		t.Errorf("two panels have one title: %q", titles)
	}
}

// rowOfNodes is the row of the dashboard that only several nodes fill.
const rowOfNodes = "Several nodes"

func panelsOfNodes(t testing.TB) []panel {
	t.Helper()
	for _, r := range dashboard {
		if r.row == rowOfNodes {
			return r.panels
		}
	}
	t.Fatalf("the dashboard has no row %q", rowOfNodes)
	return nil
}

// Every alert has its runbook, a section of the page on troubleshooting, and cases where it fires and where it does not.
func TestEveryAlertLeadsSomewhereAndIsTried(t *testing.T) {
	t.Parallel()
	read := func(path ...string) string {
		text, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	rules := read("deploy", "prometheus", "alerts.yaml")
	tests := read("deploy", "prometheus", "alerts_test.yaml") + read("deploy", "prometheus", "alerts_days_test.yaml")
	sections := map[string]bool{}
	for _, title := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(read("docs", "operate", "troubleshooting.mdx"), -1) {
		anchor := regexp.MustCompile("[^a-z0-9 _-]").ReplaceAllString(strings.ToLower(title[1]), "")
		sections[strings.ReplaceAll(anchor, " ", "-")] = true
	}
	alerts := strings.Split(rules, "- alert: ")[1:]
	if len(alerts) < 15 {
		t.Fatalf("%d alerts", len(alerts))
	}
	for _, alert := range alerts {
		name, _, _ := strings.Cut(alert, "\n")
		link := regexp.MustCompile(`runbook: /operate/troubleshooting#(\S+)`).FindStringSubmatch(alert)
		if link == nil || !sections[link[1]] {
			t.Errorf("%s leads to no section: %v", name, link)
		}
		if !regexp.MustCompile(`severity: (page|ticket)\}`).MatchString(alert) {
			t.Errorf("%s does not say whether it wakes a person", name)
		}
		for _, kind := range []string{" fires\n", " does not fire\n"} {
			if !strings.Contains(tests, "name: "+name+kind) {
				t.Errorf("%s has no case %q", name, strings.TrimSpace(kind))
			}
		}
	}
}
