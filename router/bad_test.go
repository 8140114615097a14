package router_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/api"
	"docent/router"
)

// Every way to be wrong has its status, its code, and if fields are wrong, the names of all of them.
func TestBadRequests(t *testing.T) {
	h := build(t, func(d *router.Deps) { d.Bounds.BodyBytes = 1 << 20 })
	past, soon := h.clock.Now().Add(-time.Second), h.clock.Now().Add(time.Hour)
	var (
		expired = h.key(api.Key{Kind: api.AdminKey, Org: "org-a", ExpiresAt: &past})
		notYet  = h.key(api.Key{Kind: api.AdminKey, Org: "org-a", ExpiresAt: &soon})
		revoked = h.key(api.Key{Kind: api.AdminKey, Org: "org-a", RevokedAt: &past})
		reader  = h.key(api.Key{Kind: api.AdminKey, Org: "org-a", Scopes: []string{api.ScopeRead}})
		writer  = h.key(api.Key{Kind: api.AdminKey, Org: "org-a", Scopes: []string{api.ScopeWrite}})
		inside  = h.key(api.Key{Kind: api.AdminKey, Org: "org-a",
			AllowIP: []string{"192.0.2.0/24", "2001:db8::/32", "nonsense"}})
		foreign   = h.key(api.Key{Kind: api.AdminKey, Org: "org-b"})
		elsewhere = h.key(api.Key{Kind: api.AssistantKey, Org: "org-a", Project: "acme-two"})
		job       = "/v2/agent/acme/job/" + h.create()
		create    = "/v2/agent/acme/job"
		session   = "/v1/agent/acme/job"
		jobs      = "/v2/agent/acme/jobs"
		find      = "/discovery/v1/search/docs.acme.example"
		page      = "/v1/page/docs.acme.example"
		good      = `{"prompt":"p"}`
		user      = `"messages":[{"role":"user","content":"q"}]`
	)
	with := func(fields string) string { return `{"fp":"a",` + user + `,` + fields + `}` }
	messages := func(list string) string { return `{"fp":"a","messages":` + list + `}` }
	long := func(n int) string { return strings.Repeat("ä", n) }
	used := h.quotas.total()

	type bad struct {
		method, path, key, body string
		status                  int
		code                    string
		fields                  string   // of the details, joined by spaces
		headers                 []string // pairs
	}
	cases := []bad{
		// JSON
		{"POST", create, h.admin, "{", 400, "invalid_json", "body", nil},
		{"POST", create, h.admin, " ", 400, "invalid_json", "body", nil},
		{"POST", create, h.admin, "", 400, "invalid_json", "body", []string{"Content-Type", "application/json"}},
		{"POST", create, h.admin, good + good, 400, "invalid_json", "body", nil},
		{"POST", create, h.admin, good + " x", 400, "invalid_json", "body", nil},
		{"POST", create, h.admin, `{"prompt":"p",}`, 400, "invalid_json", "body", nil},
		{"POST", create, h.admin, `{'prompt':'p'}`, 400, "invalid_json", "body", nil},
		{"POST", create, h.admin, `{"prompt":NaN}`, 400, "invalid_json", "body", nil},
		{"POST", create, h.admin, `{"prompt":"a` + "\n" + `b"}`, 400, "invalid_json", "body", nil},
		{"POST", create, h.admin, `{"prompt":"\ud8"}`, 400, "invalid_json", "body", nil},
		{"POST", create, h.admin, "{\"prompt\":\"\xff\xfe\"}", 400, "invalid_json", "body", nil},
		{"POST", create, h.admin, "\ufeff" + good, 400, "invalid_json", "body", nil},
		{"POST", create, h.admin, `prompt=p`, 400, "invalid_json", "body", nil},
		{"POST", create, h.admin, `{"prompt":"p","x":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`, 400,
			"invalid_json", "body", nil},
		{"POST", v2, h.assistant, strings.Repeat(`{"a":`, 100_000), 400, "invalid_json", "body", nil},
		{"POST", create, h.admin, "null", 400, "invalid_request", "body", nil},
		{"POST", create, h.admin, "[]", 400, "invalid_request", "body", nil},
		{"POST", v1, h.assistant, `"text"`, 400, "invalid_request", "body", nil},
		{"POST", find, h.assistant, "12", 400, "invalid_request", "body", nil},
		{"POST", page, h.assistant, "true", 400, "invalid_request", "body", nil},
		// query
		{"GET", jobs + "?limit=%zz", h.admin, "", 400, "invalid_request", "query", nil},
		{"GET", jobs + "?limit=1;cursor=x", h.admin, "", 400, "invalid_request", "query", nil},
		// prompt
		{"POST", create, h.admin, `{}`, 400, "invalid_request", "prompt", nil},
		{"POST", create, h.admin, `{"Prompt":"p"}`, 400, "invalid_request", "prompt", nil},
		{"POST", create, h.admin, `{"prompt":null}`, 400, "invalid_request", "prompt", nil},
		{"POST", create, h.admin, `{"prompt":5}`, 400, "invalid_request", "prompt", nil},
		{"POST", create, h.admin, `{"prompt":["p"]}`, 400, "invalid_request", "prompt", nil},
		{"POST", create, h.admin, `{"prompt":{}}`, 400, "invalid_request", "prompt", nil},
		{"POST", create, h.admin, `{"prompt":false}`, 400, "invalid_request", "prompt", nil},
		{"POST", create, h.admin, `{"prompt":""}`, 400, "invalid_request", "prompt", nil},
		{"POST", create, h.admin, `{"prompt":" \t\n "}`, 400, "invalid_request", "prompt", nil},
		{"POST", create, h.admin, `{"prompt":"` + long(100_001) + `"}`, 400, "invalid_request", "prompt", nil},
		{"POST", create, h.admin, `{"prompt":"a\u0000b"}`, 400, "invalid_request", "prompt", nil},
		{"POST", create, h.admin, `{"prompt":1,"asDraft":"true","model":7}`, 400, "invalid_request", "prompt model asDraft",
			nil},
		{"POST", create, h.admin, `{"prompt":"p","model":""}`, 400, "invalid_request", "model", nil},
		{"POST", create, h.admin, `{"prompt":"p","model":"nobody"}`, 400, "invalid_request", "model", nil},
		{"POST", session, h.admin, `{` + user + `,"model":"nobody"}`, 400, "invalid_request", "model", nil},
		{"POST", create, h.admin, `{"prompt":"p","prompt":1}`, 400, "invalid_request", "prompt", nil},
		{"POST", create, h.admin, `{"prompt":"p","dryRun":"yes"}`, 400, "invalid_request", "dryRun", nil},
		{"POST", job + "/message", h.admin, `{"prompt":""}`, 400, "invalid_request", "prompt", nil},
		{"POST", session, h.admin, `{}`, 400, "invalid_request", "messages", nil},
		{"POST", session, h.admin, `{"messages":[]}`, 400, "invalid_request", "messages", nil},
		{"POST", session, h.admin, `{"messages":"p"}`, 400, "invalid_request", "messages", nil},
		{"POST", session, h.admin, `{"messages":[{"role":"assistant","content":"p"}]}`, 400, "invalid_request", "messages",
			nil},
		{"POST", session, h.admin, `{"messages":[{"role":"user","content":" "}]}`, 400, "invalid_request", "messages", nil},
		{"POST", session, h.admin,
			`{"messages":["p",{"role":"tool","content":"p"},{"role":"user"},{"role":"user","content":[1]}]}`, 400,
			"invalid_request",
			"messages[0] messages[1].role messages[2].content messages[3].content", nil},
		{"POST", session, h.admin, `{"messages":[{"role":"user","content":"` + long(60_000) +
			`"},{"role":"user","content":"` + long(60_000) + `"}]}`, 400, "invalid_request", "messages", nil},
		{"POST", session, h.admin, `{` + user + `,"branch":"a..b","asDraft":"yes","model":1}`, 400, "invalid_request",
			"branch model asDraft", nil},
		{"POST", session, h.admin, `{` + user + `,"branch":"-f","asDraft":1}`, 400, "invalid_request", "branch asDraft", nil},
		{"POST", session, h.admin, `{` + user + `}`, 400, "invalid_request", "Idempotency-Key",
			[]string{"Idempotency-Key", "two words"}},
		{"POST", session, h.assistant, `{` + user + `}`, 403, "forbidden", "", nil},
		{"POST", session, foreign, `{` + user + `}`, 404, "not_found", "", nil},
		{"GET", job + "/events?after=-1", h.admin, "", 400, "invalid_request", "after", nil},
		{"GET", job + "/events?after=1&after=2", h.admin, "", 400, "invalid_request", "after", nil},
		{"GET", job + "/events", h.admin, "", 400, "invalid_request", "Last-Event-ID", []string{"Last-Event-ID", "x"}},
		{"GET", job + "/events", foreign, "", 404, "not_found", "", nil},
		{"GET", job + "/events", h.assistant, "", 403, "forbidden", "", nil},
		{"GET", "/v2/agent/acme/job/" + api.NewID(api.JobPrefix, time.Now()) + "/events", h.admin, "", 404, "not_found",
			"", nil},
		{"POST", job + "/events", h.admin, "{}", 405, "method_not_allowed", "", nil},
		{"POST", create, h.admin, good, 400, "invalid_request", "Idempotency-Key", []string{"Idempotency-Key", "two words"}},
		{"POST", create, h.admin, good, 400, "invalid_request", "Idempotency-Key",
			[]string{"Idempotency-Key", strings.Repeat("k", 256)}},
		{"POST", job + "/message", h.admin, good, 400, "invalid_request", "Idempotency-Key",
			[]string{"Idempotency-Key", "ключ"}},
		// listing and polling
		{"GET", jobs + "?limit=0", h.admin, "", 400, "invalid_request", "limit", nil},
		{"GET", jobs + "?limit=101&cursor=x&status=done&archived=yes", h.admin, "", 400, "invalid_request",
			"limit cursor status archived", nil},
		{"GET", jobs + "?limit=1&limit=2", h.admin, "", 400, "invalid_request", "limit", nil},
		{"GET", "/v1/agent/acme/jobs?take=101&skip=-1", h.admin, "", 400, "invalid_request", "skip take", nil},
		{"GET", job + "?wait=1h", h.admin, "", 400, "invalid_request", "wait", nil},
		{"GET", job + "?wait=61", h.admin, "", 400, "invalid_request", "wait", nil},
		// questions
		{"POST", v2, h.assistant, `{}`, 400, "invalid_request", "fp messages", nil},
		{"POST", v2, h.assistant, `{"fp":"","messages":[]}`, 400, "invalid_request", "fp messages", nil},
		{"POST", v2, h.assistant, `{"fp":1,"messages":{}}`, 400, "invalid_request", "fp messages", nil},
		{"POST", v1, h.assistant, `{"fp":null,` + user + `}`, 400, "invalid_request", "fp", nil},
		{"POST", v1, h.assistant, `{"fp":"` + long(257) + `",` + user + `}`, 400, "invalid_request", "fp", nil},
		{"POST", v1, h.assistant, `{"fp":"a\nb",` + user + `}`, 400, "invalid_request", "fp", nil},
		{"POST", v2, h.assistant, messages(`null`), 400, "invalid_request", "messages", nil},
		{"POST", v2, h.assistant, messages(`["q",1]`), 400, "invalid_request", "messages[0] messages[1]", nil},
		{"POST", v2, h.assistant, messages(`[{}]`), 400, "invalid_request", "messages[0].role messages[0].content", nil},
		{"POST", v2, h.assistant, messages(`[{"role":"data","content":""},{"role":"user","content":"q"}]`), 400,
			"invalid_request", "messages[0].role", nil},
		{"POST", v1, h.assistant, messages(`[{"role":"tool","content":""},{"role":5,"content":"q"}]`), 400, "invalid_request",
			"messages[0].role messages[1].role", nil},
		{"POST", v1, h.assistant, messages(`[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]`), 400,
			"invalid_request", "messages[1].role", nil},
		{"POST", v2, h.assistant, messages(`[{"role":"user","parts":[]}]`), 400, "invalid_request", "messages[0].parts", nil},
		{"POST", v2, h.assistant, messages(`[{"role":"user","parts":[{"type":"file"}]}]`), 400, "invalid_request",
			"messages[0].parts", nil},
		{"POST", v2, h.assistant, messages(`[{"role":"user","parts":[{"type":"text","text":"  "}]}]`), 400, "invalid_request",
			"messages[0].parts", nil},
		{"POST", v2, h.assistant, messages(`[{"role":"user","parts":[{"type":"text","text":5},{"text":"x"},7]}]`), 400,
			"invalid_request", "messages[0].parts[0].text messages[0].parts[1].type messages[0].parts[2]", nil},
		{"POST", v2, h.assistant, messages(`[{"role":"user","parts":"q"}]`), 400, "invalid_request", "messages[0].parts",
			nil},
		{"POST", v1, h.assistant, messages(`[{"role":"user","content":5}]`), 400, "invalid_request", "messages[0].content",
			nil},
		{"POST", v1, h.assistant, messages(`[{"role":"user","content":"` + long(32_001) + `"}]`), 400, "invalid_request",
			"messages[0].content", nil},
		{"POST", v2, h.assistant, with(`"threadId":5,"threadKey":{},"id":[],"trigger":1`), 400, "invalid_request",
			"threadId threadKey id trigger", nil},
		{"POST", v2, h.assistant, with(`"retrievalPageSize":0`), 400, "invalid_request", "retrievalPageSize", nil},
		{"POST", v2, h.assistant, with(`"retrievalPageSize":51`), 400, "invalid_request", "retrievalPageSize", nil},
		{"POST", v2, h.assistant, with(`"retrievalPageSize":2.5`), 400, "invalid_request", "retrievalPageSize", nil},
		{"POST", v2, h.assistant, with(`"retrievalPageSize":"5"`), 400, "invalid_request", "retrievalPageSize", nil},
		{"POST", v2, h.assistant, with(`"retrievalPageSize":null`), 400, "invalid_request", "retrievalPageSize", nil},
		{"POST", v2, h.assistant, with(`"retrievalPageSize":1e999`), 400, "invalid_request", "retrievalPageSize", nil},
		{"POST", v2, h.assistant, with(`"filter":[]`), 400, "invalid_request", "filter", nil},
		{"POST", v2, h.assistant, with(`"filter":{"version":1,"language":[],"tag":{},"groups":["a",2]}`), 400,
			"invalid_request", "filter.version filter.language filter.tag filter.groups[1]", nil},
		{"POST", v2, h.assistant, with(`"context":{}`), 400, "invalid_request", "context", nil},
		{"POST", v2, h.assistant,
			with(`"context":[` + strings.Repeat(`{"type":"code","value":"`+strings.Repeat("x", 40_000)+`"},`, 2) +
				`{"type":"code","value":"` + strings.Repeat("y", 20_001) + `"}]`), 400, "invalid_request", "context", nil},
		{"POST", v1, h.assistant,
			with(`"context":[` + strings.Repeat(`{"type":"code","value":"`+strings.Repeat("x", 50_000)+`"},`, 2) +
				`{"type":"code","value":"y"}]`), 400, "invalid_request", "context", nil},
		{"POST", v2, h.assistant,
			with(`"context":[{"type":"image","value":"x"},{"type":"code"},5,{"type":"code","value":"x","path":1}]`), 400,
			"invalid_request", "context[0].type context[1].value context[2] context[3].path", nil},
		{"POST", v2, h.assistant, with(`"currentPath":"` + long(201) + `"`), 400, "invalid_request", "currentPath", nil},
		{"POST", v2, h.assistant, with(`"currentPath":7`), 400, "invalid_request", "currentPath", nil},
		// search and pages
		{"POST", find, h.assistant, `{}`, 400, "invalid_request", "query", nil},
		{"POST", find, h.assistant, `{"query":" ","pageSize":0,"scoreThreshold":2,"filter":1}`, 400, "invalid_request",
			"query pageSize scoreThreshold filter", nil},
		{"POST", find, h.assistant, `{"query":"` + long(1001) + `","scoreThreshold":"0.5"}`, 400, "invalid_request",
			"query scoreThreshold", nil},
		{"POST", page, h.assistant, `{"path":"","groups":"staff"}`, 400, "invalid_request", "path groups", nil},
		{"POST", page, h.assistant, `{"path":"nowhere"}`, 404, "not_found", "", nil},
		// keys
		{"POST", create, "", good, 401, "unauthorized", "", nil},
		{"POST", create, "", good, 401, "unauthorized", "", []string{"Authorization", "Basic dXNlcjpwYXNz"}},
		{"POST", create, "", good, 401, "unauthorized", "", []string{"Authorization", "Bearer"}},
		{"POST", create, "", good, 401, "unauthorized", "", []string{"Authorization", h.admin}},
		{"POST", create, "dct_adm_short", good, 401, "unauthorized", "", nil},
		{"POST", create, h.admin[:len(h.admin)-1] + "!", good, 401, "unauthorized", "", nil},
		{"POST", create, strings.Replace(h.admin, "adm", "pub", 1), good, 401, "unauthorized", "", nil},
		{"POST", create, api.NewSecret(api.AdminKey), good, 401, "unauthorized", "", nil},
		{"POST", create, expired, good, 401, "unauthorized", "", nil},
		{"POST", create, revoked, good, 401, "unauthorized", "", nil},
		{"POST", v2, "", ask, 401, "unauthorized", "", nil},
		{"POST", create, h.assistant, good, 403, "forbidden", "", nil},
		{"POST", v1, h.admin, ask, 403, "forbidden", "", nil},
		{"POST", v2, h.admin, ask, 403, "forbidden", "", nil},
		{"POST", find, h.admin, `{"query":"q"}`, 403, "forbidden", "", nil},
		{"POST", create, reader, good, 403, "forbidden", "", nil},
		{"GET", jobs, writer, "", 403, "forbidden", "", nil},
		{"GET", jobs, inside, "", 403, "forbidden", "", nil},
		{"GET", jobs, inside, "", 403, "forbidden", "", []string{"X-Forwarded-For", "192.0.2.9, 198.51.100.1"}},
		{"GET", jobs, inside, "", 403, "forbidden", "", []string{"X-Forwarded-For", "192.0.2.9, garbage"}},
		// what is not there, or somebody else's
		{"POST", "/v2/agent/nobody/job", h.admin, good, 404, "not_found", "", nil},
		{"POST", "/v2/agent/other/job", h.admin, good, 404, "not_found", "", nil},
		{"POST", create, foreign, good, 404, "not_found", "", nil},
		{"GET", "/v1/agent/other/jobs", h.admin, "", 404, "not_found", "", nil},
		{"GET", "/v2/agent/acme/job/job_1", h.admin, "", 404, "not_found", "", nil},
		{"GET", "/v2/agent/acme/job/..%2f..%2fx", h.admin, "", 404, "not_found", "", nil},
		{"GET", "/v1/agent/acme/job/" + api.NewID(api.JobPrefix, time.Now()), h.admin, "", 404, "not_found", "", nil},
		{"GET", strings.Replace(job, "acme", "acme-two", 1), h.admin, "", 404, "not_found", "", nil},
		{"POST", strings.Replace(job, "acme", "acme-two", 1) + "/cancel", h.admin, "", 404, "not_found", "", nil},
		{"POST", strings.Replace(job, "acme", "other", 1) + "/message", foreign, good, 404, "not_found", "", nil},
		{"POST", "/v2/assistant/docs.other.example/message", h.assistant, ask, 404, "not_found", "", nil},
		{"POST", "/v2/assistant/nobody.example/message", h.assistant, ask, 404, "not_found", "", nil},
		{"POST", v2, elsewhere, ask, 404, "not_found", "", nil},
		{"POST", v2, h.assistant, with(`"threadId":"thr_unknown"`), 404, "not_found", "", nil},
		{"GET", "/v3/agent/acme/jobs", h.admin, "", 404, "not_found", "", nil},
		{"GET", "/v2/agent/acme/jobs/", h.admin, "", 404, "not_found", "", nil},
		{"GET", "/v2//agent/acme/jobs", h.admin, "", 404, "not_found", "", nil},
		{"POST", "/v2/agent//job", h.admin, good, 404, "not_found", "", nil},
		{"POST", "/v2/agent/%2e%2e/job", h.admin, good, 404, "not_found", "", nil},
		// methods and media
		{"PUT", create, h.admin, good, 405, "method_not_allowed", "", nil},
		{"GET", create, h.admin, "", 405, "method_not_allowed", "", nil},
		{"DELETE", job, h.admin, "", 405, "method_not_allowed", "", nil},
		{"PATCH", v2, h.assistant, ask, 405, "method_not_allowed", "", nil},
		{"BREW", "/healthz", "", "", 405, "method_not_allowed", "", nil},
		{"POST", "/healthz", "", "{}", 405, "method_not_allowed", "", nil},
		{"POST", create, h.admin, good, 415, "unsupported_media_type", "", []string{"Content-Type", "text/plain"}},
		{"POST", create, h.admin, good, 415, "unsupported_media_type", "", []string{"Content-Type", ""}},
		{"POST", create, h.admin, good, 415, "unsupported_media_type", "", []string{"Content-Type", "application/"}},
		{"POST", create, h.admin, good, 415, "unsupported_media_type",
			"", []string{"Content-Type", "multipart/form-data; boundary=x"}},
		{"POST", create, h.admin, good, 415, "unsupported_media_type",
			"", []string{"Content-Type", "application/json; charset=latin1"}},
		{"POST", create, h.admin, good, 415, "unsupported_media_type", "", []string{"Content-Encoding", "gzip"}},
		{"POST", v2, h.assistant, ask, 415, "unsupported_media_type", "", []string{"Content-Type", "text/event-stream"}},
		// size
		{"POST", create, h.admin, `{"prompt":"` + strings.Repeat("p", 5<<20) + `"}`, 413, "body_too_large", "", nil},
		{"POST", v1, h.assistant, `{"x":"` + strings.Repeat("p", 5<<20) + `"}`, 413, "body_too_large", "", nil},
		{"POST", find, h.assistant, strings.Repeat(" ", 1<<20) + `{"query":"q"}`, 413, "body_too_large", "", nil},
	}
	if len(cases) < 60 {
		t.Fatalf("%d cases", len(cases))
	}
	for i, c := range cases {
		name := fmt.Sprintf("%d %s %s %.40q", i, c.method, c.path, c.body)
		res := h.do(c.method, c.path, c.key, c.body, c.headers...)
		if !strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
			t.Errorf("%s: %d %v", name, res.StatusCode, res.Header)
			continue
		}
		body := decodeJSON(t, res.Body)
		if res.StatusCode != c.status || body["code"] != c.code {
			t.Errorf("%s: %d %v, want %d %s", name, res.StatusCode, body, c.status, c.code)
			continue
		}
		if body["error"] != body["message"] || body["requestId"] != res.Header.Get("X-Request-Id") {
			t.Errorf("%s: %v", name, body)
		}
		var fields []string
		details, _ := body["details"].([]any)
		for _, d := range details {
			fields = append(fields, d.(map[string]any)["field"].(string))
		}
		if got := strings.Join(fields, " "); got != c.fields {
			t.Errorf("%s: fields %q, want %q: %v", name, got, c.fields, body["error"])
		}
		for key, secret := range map[string]string{"the admin key": h.admin, "the assistant key": h.assistant} {
			if strings.Contains(fmt.Sprint(body), secret) {
				t.Errorf("%s: the answer holds %s", name, key)
			}
		}
	}
	if got := h.quotas.total(); got != used {
		t.Errorf("bad requests cost %d uses", got-used)
	}
	if h.jobs.count() != 1 || h.threads.asked != 0 {
		t.Error("a bad request did something")
	}
	// The same caller is let in once nothing is wrong.
	h.json(201, "POST", create, notYet, good, "Content-Type", "application/vnd.docent+json; charset=UTF-8")
	h.json(200, "GET", jobs, inside, "", "X-Forwarded-For", "203.0.113.1, 192.0.2.9, 10.1.2.3")
	h.json(200, "GET", jobs, inside, "", "X-Forwarded-For", "[2001:db8::1]:4711")
	h.json(200, "GET", jobs, reader, "")
	for _, secret := range []string{h.admin, h.assistant, expired, "dct_adm_short"} {
		if strings.Contains(h.log.String(), secret) {
			t.Error("a key is in the log")
		}
	}
}

func TestOneHeaderForOneKey(t *testing.T) {
	h := build(t)
	req, _ := http.NewRequest("GET", h.url+"/v2/agent/acme/jobs", nil)
	req.Header["Authorization"] = []string{"Bearer " + h.admin, "Bearer " + h.admin}
	res, err := h.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 401 {
		t.Errorf("two keys: %d", res.StatusCode)
	}
	if now := len(h.catalog.touched); now != 0 {
		t.Errorf("%d uses of keys noted", now)
	}
	h.json(200, "GET", "/v2/agent/acme/jobs", h.admin, "", "Authorization", "bEARER   "+h.admin+" ")
	if len(h.catalog.touched) != 1 {
		t.Errorf("the use of the key was noted %d times", len(h.catalog.touched))
	}
	h.catalog.fail = fmt.Errorf("the database is gone")
	if got := h.json(500, "GET", "/v2/agent/acme/jobs", h.admin, ""); strings.Contains(fmt.Sprint(got), "database") {
		t.Errorf("%v", got)
	}
}

func TestEveryResponseIsNamed(t *testing.T) {
	h := build(t)
	for sent, kept := range map[string]bool{"trace-1.2:3": true, "": false, "a b": false, strings.Repeat("x", 129): false,
		"ä": false, "<script>": false} {
		res := h.do("GET", "/nowhere", "", "", "X-Request-Id", sent)
		if got := res.Header.Get("X-Request-Id"); (got == sent) != kept || got == "" {
			t.Errorf("sent %q, got %q", sent, got)
		}
	}
}

func TestHugeBodiesDoNotFillTheMemory(t *testing.T) {
	if *over == "h2" {
		t.Skip("a client over HTTP/2 stops to send when it is refused, and this waits until all is sent")
	}
	h := build(t, func(d *router.Deps) { d.Bounds.BodyMemory, d.Bounds.Requests = 4<<20, 512 })
	const many = 200
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var wg sync.WaitGroup
	statuses := make([]int, many)
	release := make(chan struct{})
	held := make(chan struct{}, many)
	for i := range many {
		wg.Go(func() {
			arrived := sync.OnceFunc(func() { held <- struct{}{} })
			defer arrived() // one that was refused early never sends the rest
			// All of a body but its end, which comes when all have sent that much.
			body := io.MultiReader(bytes.NewReader([]byte(`{"prompt":"`)), bytes.NewReader(bytes.Repeat([]byte("x"), 90_000)),
				&gate{release, arrived}, strings.NewReader(`"}`))
			req, _ := http.NewRequest("POST", h.url+"/v2/agent/acme/job", body)
			req.Header.Set("Authorization", "Bearer "+h.admin)
			req.Header.Set("Content-Type", "application/json")
			res, err := h.client.Do(req)
			if err != nil {
				return // refused while it was still sending: the connection was closed on it
			}
			res.Body.Close()
			statuses[i] = res.StatusCode
		})
	}
	for range many {
		<-held // the client side has handed over everything, or was refused
	}
	var now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&now)
	if grown := int64(now.HeapAlloc) - int64(before.HeapAlloc); grown > 64<<20 {
		t.Errorf("the heap grew by %d MiB for %d bodies", grown>>20, many)
	}
	close(release)
	wg.Wait()
	count := map[int]int{}
	for _, s := range statuses {
		count[s]++
	}
	if count[500] != 0 || count[201]+count[503]+count[429]+count[0] != many {
		t.Errorf("answers: %v", count)
	}
	// The memory is given back: what fits is served again.
	p := h.catalog.projects["acme"]
	p.Limits.ProjectHour = -1
	h.catalog.projects["acme"] = p
	for range 30 {
		h.json(201, "POST", "/v2/agent/acme/job", h.admin, `{"prompt":"`+strings.Repeat("x", 90_000)+`"}`)
	}
}

// A gate is a reader that says when it is reached, and ends when it is opened.
type gate struct {
	open    <-chan struct{}
	reached func()
}

func (g *gate) Read([]byte) (int, error) {
	g.reached()
	<-g.open
	return 0, io.EOF
}
