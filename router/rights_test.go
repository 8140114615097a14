package router_test

import (
	"io"
	"iter"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"docent/api"
	"docent/router"
	"docent/router/oauth"
)

// who are the callers that the table of operations tells apart: by a letter, and by their key. The last ones have keys of the
// same kinds elsewhere, and may nothing anywhere but what everybody may.
var who = []struct {
	letter string
	key    api.Key
}{
	{"n", api.Key{}}, // nobody
	{"a", api.Key{Kind: api.AssistantKey, Org: "org-a", Project: "acme"}},
	{"s", api.Key{Kind: api.ServerKey, Org: "org-a", Project: "acme"}},
	{"r", api.Key{Kind: api.AdminKey, Org: "org-a", Scopes: []string{api.ScopeRead}}},
	{"w", api.Key{Kind: api.AdminKey, Org: "org-a", Scopes: []string{api.ScopeWrite}}},
	{"another project's assistant key", api.Key{Kind: api.AssistantKey, Org: "org-a", Project: "acme-two"}},
	{"another organization's assistant key", api.Key{Kind: api.AssistantKey, Org: "org-b", Project: "other"}},
	{"another organization's server key", api.Key{Kind: api.ServerKey, Org: "org-b", Project: "other"}},
	{"another organization's admin key", api.Key{Kind: api.AdminKey, Org: "org-b"}},
	{"a key that names another organization's project", api.Key{Kind: api.AssistantKey, Org: "org-b", Project: "acme"}},
}

// everybody stands for all callers, and own for those whose key says which project is meant.
const everybody, own = "*", ",+"

// rights is what docs/operate/security.mdx promises: who may call each operation of a project that is not public. An operation
// that is new belongs here.
var rights = map[string]string{
	"POST /v2/agent/:projectId/job":             "w",
	"GET /v2/agent/:projectId/job/:id":          "r",
	"POST /v2/agent/:projectId/job/:id/message": "w",
	"GET /v2/agent/:projectId/job/:id/events":   "r",
	"POST /v2/agent/:projectId/job/:id/archive": "w",
	"POST /v2/agent/:projectId/job/:id/cancel":  "w",
	"GET /v2/agent/:projectId/jobs":             "r",
	"POST /v1/agent/:projectId/job":             "w",
	"GET /v1/agent/:projectId/jobs":             "r",
	"GET /v1/agent/:projectId/job/:id":          "r",

	"POST /v1/project/update/:projectId":                             "w",
	"GET /v1/project/update-status/:statusId":                        "r",
	"GET /v1/analytics/:projectId/assistant":                         "r",
	"GET /v1/analytics/:projectId/assistant/threads/:threadId":       "r",
	"GET /v1/analytics/:projectId/assistant/caller-stats":            "r",
	"GET /v1/analytics/:projectId/searches":                          "r",
	"GET /v1/analytics/:projectId/feedback":                          "r",
	"GET /v1/analytics/:projectId/feedback/by-page":                  "r",
	"POST /v1/evaluation/:projectId":                                 "w",
	"POST /v1/webhook/:projectId/push":                               "", // who signs as the code host does
	"GET /healthz":                                                   everybody,
	"GET /readyz":                                                    everybody,
	"GET /metrics":                                                   "r,another organization's admin key", // of the server, not of a project
	"GET /openapi.json":                                              everybody,
	"GET /openapi.yaml":                                              everybody,
	"GET /widget/:file":                                              everybody,
	"GET /widget/settings/:domain":                                   everybody,
	"GET /discovery/v1/assistant/:domain/challenge":                  "a,s",
	"POST /discovery/v1/contact/:domain":                             "a,s",
	"POST /v1/chat/completions":                                      "a,s" + own,
	"POST /v1/responses":                                             "a,s" + own,
	"POST /v1/ag-ui/:domain":                                         "a,s",
	"GET /v1/models":                                                 "a,s" + own,
	"GET /v1/models/:model":                                          "a,s" + own,
	"GET /llms/:domain/*file":                                        "a,s",
	"POST /discovery/v1/assistant/:domain/message":                   "a,s,w", // w: with explain
	"GET /discovery/v1/assistant/:domain/message":                    "a,s,r",
	"POST /discovery/v2/assistant/:domain/message":                   "a,s,w",
	"GET /discovery/v2/assistant/:domain/message/:id/stream":         "a,s,r",
	"POST /discovery/v1/search/:domain":                              "a,s",
	"POST /discovery/v1/page/:domain":                                "a,s",
	"POST /discovery/v1/feedback/:domain":                            "a,s",
	"POST /v1/assistant/:domain/message":                             "a,s,w",
	"GET /v1/assistant/:domain/message":                              "a,s,r",
	"POST /v2/assistant/:domain/message":                             "a,s,w",
	"GET /v2/assistant/:domain/message/:id/stream":                   "a,s,r",
	"POST /v1/search/:domain":                                        "a,s",
	"POST /v1/page/:domain":                                          "a,s",
	"POST /v1/feedback/:domain":                                      "a,s",
	"POST /mcp/:domain":                                              "a,s",
	"GET /mcp/:domain":                                               "a,s",
	"DELETE /mcp/:domain":                                            "a,s",
	"POST /mcp/agent/:projectId":                                     "w",
	"GET /mcp/agent/:projectId":                                      "r",
	"DELETE /mcp/agent/:projectId":                                   "w",
	"GET /.well-known/oauth-authorization-server":                    everybody,
	"GET /.well-known/oauth-protected-resource/mcp/:domain":          everybody,
	"GET /.well-known/oauth-protected-resource/mcp/agent/:projectId": everybody,
	"POST /oauth/register":                                           everybody,
	"POST /oauth/reader":                                             everybody,
	"POST /oauth/token":                                              everybody, // each has its own proof
	"GET /docs/-/*path":                                              everybody,
	"POST /docs/-/*path":                                             everybody,
}

// quick are tools that answer at once.
type quick struct{}

func (quick) ServeReaders(w http.ResponseWriter, _ *http.Request, _ api.Project, _ netip.Addr) {
	w.WriteHeader(http.StatusOK)
}

func (quick) ServeAgent(w http.ResponseWriter, _ *http.Request, _ api.Project, _ netip.Addr) {
	w.WriteHeader(http.StatusOK)
}

// noPages are the pages of a server that has none.
type noPages struct{ router.Pages }

func (noPages) Routes() iter.Seq2[string, string] { return func(func(string, string) bool) {} }

// closed is what is said at the door; what an operation says of its own ids and fields is another matter.
var closed = regexp.MustCompile(`there is no such (project|domain|update|model)`)

func TestEachOperationIsForThoseWhomTheTableNames(t *testing.T) {
	h := build(t, func(d *router.Deps) {
		d.Tools, d.MetricsFrom = quick{}, []netip.Prefix{}
		d.OAuth = oauth.New(oauth.Deps{PublicURL: "https://docent.example", Secret: d.Secret})
		d.Pages = noPages{}
		d.Manual = func(w http.ResponseWriter, _ *http.Request) error { w.WriteHeader(http.StatusOK); return nil }
	})
	job := h.create()
	update := h.json(202, "POST", "/v1/project/update/acme", h.admin, "")["statusId"].(string)
	h.jobs.change(api.JobID(job), ended)
	secrets := map[string]string{}
	for _, caller := range who {
		if caller.letter != "n" {
			secrets[caller.letter] = h.key(caller.key)
		}
	}
	address := strings.NewReplacer(":projectId", "acme", ":domain", "docs.acme.example", ":model", "docs.acme.example", ":statusId", update,
		":threadId", "thr_000000000000000000000000000000", ":id", job, ":file", "none.js", "*file", "llms.txt", "*path", "discovery/x")
	seen, combinations := map[string]bool{}, 0
	for _, operation := range h.server.Operations() {
		name := operation[0] + " " + operation[1]
		may, known := rights[name]
		if seen[name] = true; !known {
			t.Errorf("%s is new: say here, and in docs/operate/security.mdx, who may call it", name)
			continue
		}
		at := address.Replace(operation[1])
		for _, caller := range who {
			body := ""
			if operation[0] == http.MethodPost {
				body = `{"explain": true}`
			}
			req, err := http.NewRequestWithContext(t.Context(), operation[0], h.url+at, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			if secret := secrets[caller.letter]; secret != "" {
				req.Header.Set("Authorization", "Bearer "+secret)
			}
			res, err := h.web.Client().Do(req)
			if err != nil {
				t.Fatal(name, caller.letter, err)
			}
			text, _ := io.ReadAll(res.Body)
			res.Body.Close()
			combinations++
			let := res.StatusCode != http.StatusUnauthorized && res.StatusCode != http.StatusForbidden &&
				!(res.StatusCode == http.StatusNotFound && closed.Match(text)) || strings.HasPrefix(operation[1], "/oauth/")
			reads := slices.Contains([]api.KeyKind{api.AssistantKey, api.ServerKey}, caller.key.Kind)
			want := may == everybody || slices.Contains(strings.Split(may, ","), caller.letter) ||
				strings.HasSuffix(may, own) && reads && caller.key.Project != "acme" && !strings.Contains(operation[1], ":model")
			if let != want {
				t.Errorf("%s for %s: %d %.200s", name, caller.letter, res.StatusCode, text)
			}
		}
	}
	for name := range rights {
		if !seen[name] {
			t.Errorf("there is no %s any more", name)
		}
	}
	t.Logf("%d combinations", combinations)
}
