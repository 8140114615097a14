package nodes

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"docent/api"
	"docent/api/client"
	"docent/api/stream"
	"docent/tests/harness"
)

// TestAnyNodeAnswersForTheOneThatRunsIt has two nodes on one database. What the first one runs is asked, read, changed and
// deleted through the second one, and what the client gets is what the first one sends.
func TestAnyNodeAnswersForTheOneThatRunsIt(t *testing.T) {
	t.Parallel()
	db := harness.NewDatabase(t, "127.0.0.1", false, false)
	model := harness.NewGatedModel(t)
	l := harness.NewNodes(t, 2, nil, db, 1, "--config", harness.SettingsFile(t, fmt.Sprintf("[models.slow]\nprovider = \"openai\"\nbase_url = %q\n"+
		"model = \"gated\"\nrewrite = \"off\"\nclaims = \"off\"\nfallback = false\n", model.URL+"/v1")+harness.EndlessModel))
	l.Open()
	free := []string{"--limit-key-month", harness.Plentiful, "--limit-org-hour", harness.Plentiful, "--limit-ip-day",
		harness.Plentiful}
	add := func(id, model string) harness.Project {
		return harness.NewProject(t, l.Nodes[0].Data, id, harness.WriteFiles(t, harness.Harbour), slices.Concat(free,
			[]string{"--model", model})...)
	}
	p := &passed{t: t, lab: l, model: model, here: l.Nodes[0], there: l.Nodes[1], harbour: add("harbour", "builtin"),
		slow: add("slow", "slow"), endless: add("endless", "endless")}
	for _, n := range l.Nodes { // both have an index, so that both find the same
		for _, project := range []harness.Project{p.harbour, p.slow, p.endless} {
			p.send(n, "POST", "/discovery/v1/search/"+project.Domain, project.Assistant, `{"query":"ferry"}`).want(200)
		}
	}
	for name, test := range map[string]func(*passed){
		"version 1 of the streams": func(p *passed) { p.conversation("v1") },
		"version 2 of the streams": func(p *passed) { p.conversation("v2") },
		"a live answer":            (*passed).liveAnswer, "a chat": (*passed).chat, "jobs": (*passed).jobs,
		"one Idempotency-Key at both": (*passed).oneKey, "an MCP session": (*passed).session, "pages": (*passed).pages,
		"a person's data": (*passed).erased, "who is no node": (*passed).strangers, "a comparison": (*passed).comparison,
	} {
		t.Run(name, func(t *testing.T) {
			inner := *p
			inner.t = t
			test(&inner)
		})
	}
	if t.Failed() {
		t.Log(l.Logs())
	}
}

// passed is what the parts of the test work with: here is the node that runs what they make, there passes requests on.
type passed struct {
	t                      *testing.T
	lab                    *harness.Nodes
	model                  *harness.GatedModel // of slow
	here, there            *harness.Node
	harbour, slow, endless harness.Project
}

// A said is an answer as it came.
type said struct {
	t      *testing.T
	at     string
	status int
	header http.Header
	body   string
}

func (s said) want(status int) said {
	s.t.Helper()
	if s.status != status {
		s.t.Fatalf("%s: %d, want %d\n%s", s.at, s.status, status, s.body)
	}
	return s
}

// open sends a request to a node. What follows the body are headers and their values.
func (p *passed) open(n *harness.Node, method, path, key, body string, header ...string) *http.Response {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, n.URL+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { res.Body.Close() })
	return res
}

func (p *passed) send(n *harness.Node, method, path, key, body string, header ...string) said {
	p.t.Helper()
	return p.read(n, p.open(n, method, path, key, body, header...))
}

func (p *passed) read(n *harness.Node, res *http.Response) said {
	p.t.Helper()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatalf("%s %s at %s: %v after %s", res.Request.Method, res.Request.URL.Path, n.Name, err, text)
	}
	return said{p.t, fmt.Sprintf("%s %s at %s", res.Request.Method, res.Request.URL.Path, n.Name), res.StatusCode, res.Header,
		string(text)}
}

var (
	ownIDs      = regexp.MustCompile(`\b(thr|msg|job|turn|trn)_[0-9A-Za-z]{10,}`)
	ownTimes    = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	requestIDs  = regexp.MustCompile(`req_[0-9A-Za-z]+`)
	countedDown = regexp.MustCompile(`;[rt]=\d+`)
)

// alike reports a difference between two answers. Ids and times may differ where the requests are not the same one; what
// names the request, and what counts it, always does.
func (p *passed) alike(a, b said, sameRequest bool) {
	p.t.Helper()
	text := func(s said) string {
		var w strings.Builder
		h := s.header.Clone()
		for _, own := range []string{"Date", "X-Request-Id"} {
			h.Del(own)
		}
		if !sameRequest {
			h.Del("X-Thread-Key")
		}
		fmt.Fprintln(&w, s.status)
		_ = h.Write(&w)
		head, body := countedDown.ReplaceAllString(w.String(), ""), requestIDs.ReplaceAllString(s.body, "req")
		if !sameRequest {
			head, body = ownIDs.ReplaceAllString(head, "$1"), ownTimes.ReplaceAllString(ownIDs.ReplaceAllString(body, "$1"), "T")
		}
		return head + "\n" + body
	}
	if one, other := text(a), text(b); one != other {
		p.t.Errorf("%s:\n%s\n%s:\n%s", a.at, one, b.at, other)
	}
	for _, s := range []said{a, b} {
		if s.header.Get("X-Request-Id") == "" {
			p.t.Errorf("%s: no X-Request-Id", s.at)
		}
		for name := range s.header {
			if strings.HasPrefix(name, "Docent-Node") {
				p.t.Errorf("%s: clients see %s", s.at, name)
			}
		}
	}
}

// both sends the same request to both nodes: the answers are the same, byte for byte.
func (p *passed) both(method, path, key, body string, header ...string) said {
	p.t.Helper()
	a := p.send(p.here, method, path, key, body, header...)
	p.alike(a, p.send(p.there, method, path, key, body, header...), true)
	return a
}

// asked asks at a node, in a thread where one is named.
func (p *passed) asked(n *harness.Node, form string, project harness.Project, text, fields string) said {
	p.t.Helper()
	return p.send(n, "POST", "/discovery/"+form+"/assistant/"+project.Domain+"/message", project.Assistant, question(text, fields))
}

func question(text, fields string) string {
	return fmt.Sprintf(`{"fp":"user-1","messages":[{"role":"user","content":%q}]%s}`, text, fields)
}

// runs fails where not that node runs the thread.
func (p *passed) runs(n *harness.Node, id string) {
	p.t.Helper()
	if owner, _ := ownerOf(p.lab, api.ThreadID(id)); owner != n {
		p.t.Fatalf("%s is run by %s, want %s", id, owner.Name, n.Name)
	}
}

// Each event of an answer is the same: when it is asked, when it is read again, in the listing and after it was rated.
func (p *passed) conversation(form string) {
	const first, second = "When does the ferry leave?", "And how much are tickets?"
	var ids []string
	for _, n := range []*harness.Node{p.here, p.there} { // new threads are run where they are asked for
		answer := p.asked(n, form, p.harbour, first, "").want(200)
		ids = append(ids, answer.header.Get("X-Thread-Id"))
		p.runs(n, ids[len(ids)-1])
	}
	twin := p.asked(p.here, form, p.harbour, first, "").want(200).header.Get("X-Thread-Id")
	own := p.asked(p.here, form, p.harbour, second, `,"threadId":"`+twin+`"`).want(200)
	passed := p.asked(p.there, form, p.harbour, second, `,"threadId":"`+ids[0]+`"`).want(200)
	p.alike(own, passed, false)
	if passed.header.Get("X-Thread-Id") != ids[0] || !strings.Contains(passed.body, "finish") {
		p.t.Errorf("the follow-up of %s: %v\n%s", ids[0], passed.header, passed.body)
	}
	p.runs(p.here, ids[0])

	resume := "/discovery/v2/assistant/" + p.harbour.Domain + "/message/" + ids[0] + "/stream?fp=user-1"
	if form == "v1" {
		resume = "/discovery/v1/assistant/" + p.harbour.Domain + "/message?chatId=" + ids[0] + "&fp=user-1"
	}
	p.both("GET", resume, p.harbour.Assistant, "").want(200)
	p.both("HEAD", resume, p.harbour.Assistant, "")
	whole := "/v1/analytics/" + p.harbour.ID + "/assistant/threads/" + ids[0]
	before := p.both("GET", whole, p.harbour.Admin, "").want(200)
	if n := strings.Count(before.body, second); n != 1 {
		p.t.Errorf("the follow-up stands %d times in %s", n, before.body)
	}
	message := regexp.MustCompile(`msg_[0-9A-Za-z]+`).FindString(passed.body)
	rating := `{"threadId":"` + ids[0] + `","messageId":"` + message + `","rating":"down","comment":"over the hop"}`
	p.send(p.there, "POST", "/discovery/v1/feedback/"+p.harbour.Domain, p.harbour.Assistant, rating).want(204)
	if after := p.both("GET", whole, p.harbour.Admin, ""); !strings.Contains(after.body, "over the hop") {
		p.t.Errorf("the rating is not there: %s", after.body)
	}
	// What is refused, is refused in the same words.
	p.both("POST", "/discovery/v1/feedback/"+p.harbour.Domain, p.harbour.Assistant, strings.Replace(rating, message, "msg_"+
		strings.Repeat("0", 26), 1)).want(404)
	p.both("GET", whole+"0", p.harbour.Admin, "").want(404)
	p.both("GET", resume, p.slow.Assistant, "")
}

// An answer that is being written is read by two more: through the other node while it goes on. Its second half is written
// only when the first one has come through.
func (p *passed) liveAnswer() {
	const first, second = "It is told so on the page", "It leaves from pier two"
	res := p.open(p.here, "POST", "/discovery/v2/assistant/"+p.slow.Domain+"/message", p.slow.Assistant,
		question("When does the ferry leave?", ""))
	id := res.Header.Get("X-Thread-Id")
	p.runs(p.here, id)
	resume := "/discovery/v2/assistant/" + p.slow.Domain + "/message/" + id + "/stream?fp=user-1"
	old := "/discovery/v1/assistant/" + p.slow.Domain + "/message?fp=user-1&chatId=" + id
	live, oldLive := p.open(p.there, "GET", resume, p.slow.Assistant, ""), p.open(p.there, "GET", old, p.slow.Assistant, "")
	decoder := stream.NewDecoder(stream.UIMessages, live.Body)
	for {
		part, err := decoder.Next()
		if err != nil {
			p.t.Fatal(err)
		}
		if part.Kind == stream.Text {
			break
		}
	}
	// A part has come through; the answer has not ended.
	if s := p.send(p.here, "GET", "/v1/analytics/"+p.slow.ID+"/assistant/threads/"+id, p.slow.Admin, "").want(200); strings.Contains(s.body, second) {
		p.t.Errorf("what is passed on came when all was written: %s", s.body)
	}
	p.model.Second <- struct{}{}
	whole := func(body string) bool { return strings.Count(body, first) == 1 && strings.Count(body, second) == 1 }
	if s := p.read(p.there, oldLive); !whole(s.body) || !strings.Contains(s.body, `2:[{"type":"finish"`) {
		p.t.Errorf("version 1 of a live answer: %s", s.body)
	}
	if s := p.read(p.here, res); !whole(s.body) || !strings.HasSuffix(s.body, "data: [DONE]\n\n") {
		p.t.Errorf("the answer: %s", s.body)
	}
	for {
		part, err := decoder.Next()
		if err != nil {
			p.t.Fatalf("the answer that is passed on broke off: %v", err)
		}
		if part.Kind == stream.Finish {
			break
		}
	}
	p.both("GET", resume, p.slow.Assistant, "").want(200)
	p.both("GET", old, p.slow.Assistant, "").want(200)
}

// A chat is found by the client's own id at each node, by its key and from its address, whatever a client says it is.
func (p *passed) chat() {
	first := p.asked(p.here, "v2", p.harbour, "When does the ferry leave?", `,"id":"my chat"`).want(200)
	id := first.header.Get("X-Thread-Id")
	p.runs(p.here, id)
	next := p.asked(p.there, "v2", p.harbour, "And how much are tickets?", `,"id":"my chat","threadId":"`+id+`"`).want(200)
	if next.header.Get("X-Thread-Id") != id {
		p.t.Errorf("the chat goes on in %s, want %s", next.header.Get("X-Thread-Id"), id)
	}
	by := "/discovery/v2/assistant/" + p.harbour.Domain + "/message/my%20chat/stream"
	if s := p.both("GET", by, p.harbour.Assistant, "").want(200); s.header.Get("X-Thread-Id") != id {
		p.t.Errorf("resumed %s", s.header.Get("X-Thread-Id"))
	}
	imitated := []string{"Docent-Node-Client", "127.0.0.1:999", "Docent-Node-Scheme", "https", "Docent-Node-Entry", "keyless",
		"Docent-Node-Not-Owner", "1"}
	for _, n := range []*harness.Node{p.here, p.there} {
		for _, header := range [][]string{nil, imitated} {
			req, err := http.NewRequestWithContext(p.t.Context(), "GET", n.URL+by, nil)
			if err != nil {
				p.t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+p.harbour.Assistant)
			for i := 0; i < len(header); i += 2 {
				req.Header.Set(header[i], header[i+1])
			}
			elsewhere := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
				DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext}}
			res, err := elsewhere.Do(req)
			if err != nil {
				p.t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != http.StatusNoContent {
				p.t.Errorf("%s: somebody at another address, with %q: %d", n.Name, header, res.StatusCode)
			}
		}
	}
	p.both("GET", by, p.harbour.Assistant, "", imitated...).want(200)
	p.both("GET", by, "no key at all", "", imitated...).want(401)
}

// What a job does and says is the same at both nodes; instructions through either reach it.
func (p *passed) jobs() {
	ctx, cancel := context.WithTimeout(p.t.Context(), 5*time.Minute)
	defer cancel()
	at, over := p.here.Client(p.harbour.Admin), p.there.Client(p.harbour.Admin)
	made, err := at.CreateJob(ctx, p.harbour.ID, client.CreateJob{Prompt: `create page far.md titled "Far" with content: "made"`})
	if err != nil {
		p.t.Fatal(err)
	}
	id := string(made.ID)
	path := "/v2/agent/" + p.harbour.ID + "/job/" + id
	watched := p.open(p.there, "GET", path+"/events", p.harbour.Admin, "")
	if s := p.read(p.there, watched); !strings.Contains(s.body, "event: end") {
		p.t.Errorf("the job is followed to its end: %s", s.body)
	}
	if _, err := over.FollowUp(ctx, p.harbour.ID, id, `append "and more" to far.md`); err != nil {
		p.t.Fatal(err)
	}
	if j, err := over.WaitForJob(ctx, p.harbour.ID, id); err != nil || j.Status != "completed" {
		p.t.Fatalf("%+v, %v", j, err)
	}
	p.both("GET", path, p.harbour.Admin, "").want(200)
	p.both("HEAD", path, p.harbour.Admin, "")
	all := p.both("GET", path+"/events", p.harbour.Admin, "").want(200)
	if n := strings.Count(all.body, "event: created"); n != 1 || !strings.Contains(all.body, "and more") {
		p.t.Errorf("the job's events: %s", all.body)
	}
	p.both("GET", path+"/events", p.harbour.Admin, "", "Last-Event-ID", "3").want(200)
	p.both("GET", "/v1/agent/"+p.harbour.ID+"/job/"+id, p.harbour.Admin, "").want(200)
	p.both("POST", path+"/cancel", p.harbour.Admin, "")
	p.both("POST", path+"/message", p.harbour.Admin, `{"prompt":""}`).want(400)
	for _, again := range []string{"one", "two"} { // the second time it is archived already
		if j, err := over.ArchiveJob(ctx, p.harbour.ID, id); err != nil || j.ArchivedAt == nil {
			p.t.Fatalf("archived for time %s: %+v, %v", again, j, err)
		}
	}
	p.both("GET", path, p.harbour.Admin, "").want(200)
	p.both("POST", path+"/message", p.harbour.Admin, `{"prompt":"go on"}`).want(409)

	// A job of many steps is stopped through the other node.
	var steps strings.Builder
	for n := range 200 {
		fmt.Fprintf(&steps, "create page many/p%d.md titled \"P\" with content: \"made\"\n", n)
	}
	made, err = at.CreateJob(ctx, p.harbour.ID, client.CreateJob{Prompt: steps.String()})
	if err != nil {
		p.t.Fatal(err)
	}
	stopped := p.send(p.there, "POST", "/v2/agent/"+p.harbour.ID+"/job/"+string(made.ID)+"/cancel", p.harbour.Admin, "")
	j, err := at.WaitForJob(ctx, p.harbour.ID, string(made.ID))
	if err != nil || stopped.status == 200 && j.Message != "cancelled" || stopped.status != 200 && stopped.status != 409 {
		p.t.Errorf("stopped: %d %s, then %+v, %v", stopped.status, stopped.body, j, err)
	}
}

// A job that is created under one key at both nodes at once is one job.
func (p *passed) oneKey() {
	for round := range 5 {
		body := fmt.Sprintf(`{"prompt":"create page key%d.md titled \"Key\" with content: \"once\""}`, round)
		ids := make([]string, 8)
		var all sync.WaitGroup
		for i := range ids {
			all.Go(func() {
				// A node says that it is busy, and to come back, for as long as the other one has begun and not ended.
				for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
					s := p.send([]*harness.Node{p.here, p.there}[i%2], "POST", "/v2/agent/"+p.harbour.ID+"/job", p.harbour.Admin, body,
						"Idempotency-Key", fmt.Sprintf("round-%d", round))
					var j struct{ ID string }
					if s.status == 201 && json.Unmarshal([]byte(s.body), &j) == nil {
						ids[i] = j.ID
						return
					}
					if s.status != 503 && s.status != 429 {
						p.t.Errorf("%s: %d %s", s.at, s.status, s.body)
						return
					}
				}
			})
		}
		all.Wait()
		if slices.Sort(ids); ids[0] == "" || ids[0] != ids[len(ids)-1] {
			p.t.Errorf("one key, jobs %q", ids)
		}
		made := p.lab.Database.SQL(fmt.Sprintf("SELECT count(DISTINCT stream) FROM journal_events WHERE stream LIKE 'job/%%' AND "+
			"position('key%d.md'::bytea in data) > 0", round))
		if made != "1" {
			p.t.Errorf("key%d.md is made by %s jobs", round, made)
		}
	}
}

// alternate sends a client's requests to one node after the other.
type alternate struct {
	harness.Bearer
	nodes []*harness.Node
	n     *atomic.Int64
}

func (a alternate) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Host = a.nodes[int(a.n.Add(1))%len(a.nodes)].Listen
	return a.Bearer.RoundTrip(req)
}

// A session goes on at whichever node its requests come to.
func (p *passed) session() {
	for name, at := range map[string][2]string{"/mcp/" + p.harbour.Domain: {p.harbour.Assistant, "search"},
		"/mcp/agent/" + p.harbour.ID: {p.harbour.Admin, "list_jobs"}} {
		over := &http.Client{Transport: alternate{harness.Bearer(at[0]), p.lab.Nodes, new(atomic.Int64)}}
		session, err := harness.Connect(p.t, &mcp.StreamableClientTransport{Endpoint: p.here.URL + name, HTTPClient: over})
		if err != nil {
			p.t.Fatalf("%s: %v", name, err)
		}
		id := session.ID()
		for range 4 {
			args := map[string]any{}
			if at[1] == "search" {
				args["query"] = "ferry"
			}
			if text, result := harness.CallTool(p.t, session, at[1], args); result.IsError || text == "" {
				p.t.Errorf("%s: %s", name, text)
			}
		}
		if at[1] == "search" {
			for range 2 {
				if text, result := harness.CallTool(p.t, session, "ask", map[string]any{"question": "When does the ferry leave?"}); result.IsError || text == "" {
					p.t.Errorf("%s: %s", name, text)
				}
			}
		}
		if session.ID() != id {
			p.t.Errorf("%s started over: %s, then %s", name, id, session.ID())
		}
	}
}

// browser is somebody who has signed in at one node. The session holds at each.
func (p *passed) browser(n *harness.Node, project harness.Project) (at func(*harness.Node) *harness.Visitor) {
	house := &harness.Console{T: p.t, URL: n.URL, Log: new(harness.LockedBuffer)}
	return p.everywhere(house, house.SignedIn(project.Admin))
}

// operator is browser for who runs the nodes, by a link.
func (p *passed) operator(n *harness.Node) (at func(*harness.Node) *harness.Visitor) {
	p.t.Helper()
	house := &harness.Console{T: p.t, URL: n.URL, Log: new(harness.LockedBuffer)}
	jar, _ := cookiejar.New(nil)
	b := &harness.Visitor{Console: house, Client: &http.Client{Jar: jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	link := regexp.MustCompile(`/enter/[A-Z0-9]+`).FindString(harness.Docent(p.t, "console", "--data", n.Data))
	if status, page, _ := b.Send(link, link, nil); status != http.StatusSeeOther {
		p.t.Fatalf("sign in by %q: %d\n%s", link, status, page)
	}
	return p.everywhere(house, b)
}

// everywhere gives a visitor's session at each node.
func (p *passed) everywhere(house *harness.Console, first *harness.Visitor) (at func(*harness.Node) *harness.Visitor) {
	return func(n *harness.Node) *harness.Visitor {
		jar, _ := cookiejar.New(nil)
		from, _ := url.Parse(house.URL)
		to, _ := url.Parse(n.URL)
		jar.SetCookies(to, first.Client.Jar.Cookies(from))
		return &harness.Visitor{Console: &harness.Console{T: p.t, URL: n.URL, Log: house.Log}, Client: &http.Client{Jar: jar,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	}
}

// An answer is stopped, and a conversation deleted, on a page of the other node.
func (p *passed) pages() {
	at := p.browser(p.there, p.endless)
	base := "/console/" + string(api.DefaultOrg) + "/" + p.endless.Domain
	status, page, to := at(p.here).Send(base+"/playground", base+"/playground/try", url.Values{"q": {"Tell me all."}, "do": {"ask"}})
	if status != http.StatusSeeOther {
		p.t.Fatalf("asked: %d %s", status, page)
	}
	asked, _ := url.Parse(to)
	id := asked.Query().Get("a.thread")
	p.runs(p.here, id)
	at(p.here).Await(to, "part-0") // something is said before it is stopped
	if status, page, _ := at(p.there).Send(to, base+"/playground/answers/"+id+"/stop", nil); status != http.StatusSeeOther {
		p.t.Fatalf("stopped: %d %s", status, page)
	}
	for _, n := range p.lab.Nodes {
		if page := at(n).Open(to); strings.Contains(page, "aria-busy") || !strings.Contains(page, "part-0") {
			p.t.Errorf("%s after the stop: %s", n.Name, page)
		}
	}

	public := p.asked(p.here, "v2", p.harbour, "When does the ferry leave?", "").want(200).header.Get("X-Thread-Id")
	at = p.operator(p.here) // a key deletes nothing in the console
	base = "/console/" + string(api.DefaultOrg) + "/" + p.harbour.Domain
	shown := base + "/conversations/" + public
	if page := at(p.there).Open(shown); !strings.Contains(page, "When does the ferry leave?") {
		p.t.Errorf("the conversation: %s", page)
	}
	if status, page, _ := at(p.there).Send(shown, shown+"/delete", nil); status != http.StatusSeeOther {
		p.t.Fatalf("deleted: %d %s", status, page)
	}
	p.both("GET", "/v1/analytics/"+p.harbour.ID+"/assistant/threads/"+public, p.harbour.Admin, "").want(404)
}

// Two answers that are compared belong to different nodes. Both are shown, and a follow-up asks each of them once.
func (p *passed) comparison() {
	at := p.browser(p.here, p.harbour)
	base := "/console/" + string(api.DefaultOrg) + "/" + p.harbour.Domain
	var ids []string
	for _, n := range p.lab.Nodes {
		status, page, to := at(n).Send(base+"/playground", base+"/playground/try", url.Values{"q": {"When does the ferry leave?"}, "do": {"ask"}})
		if status != http.StatusSeeOther {
			p.t.Fatalf("asked: %d %s", status, page)
		}
		asked, _ := url.Parse(to)
		ids = append(ids, asked.Query().Get("a.thread"))
		p.runs(n, ids[len(ids)-1])
		at(n).Await(to, "badge ok")
	}
	const next = "How much are tickets for two?"
	form := url.Values{"q": {next}, "do": {"follow"}, "both": {"1"}, "a.thread": {ids[0]}, "b.thread": {ids[1]}}
	for i, n := range p.lab.Nodes {
		form.Set("q", fmt.Sprintf("%s (%d)", next, i))
		path := base + "/playground/try"
		for step := 0; ; step++ {
			status, page, to := at(n).Send(base+"/playground", path, form)
			if status == http.StatusSeeOther {
				path = to
				break
			}
			if status != http.StatusTemporaryRedirect || step == 2 {
				p.t.Fatalf("followed up at %s: %d to %s\n%s", n.Name, status, to, page)
			}
			path = to
		}
		for _, look := range p.lab.Nodes {
			b := at(look)
			ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
			for page := b.Open(path); strings.Count(page, "class=\"answer\"") != 2 || strings.Contains(page, "aria-busy"); page = b.Open(path) {
				if ctx.Err() != nil {
					p.t.Fatalf("%s never shows both answers: %s", look.Name, page)
				}
			}
			cancel()
		}
		for _, id := range ids {
			asked := p.lab.Database.SQL(fmt.Sprintf("SELECT count(*) FROM journal_events WHERE stream = 'thread/%s' AND type LIKE 'thread.asked.%%' AND position(%s in data) > 0",
				id, "'"+form.Get("q")+"'::bytea"))
			if asked != "1" {
				p.t.Errorf("%q stands %s times in %s", form.Get("q"), asked, id)
			}
		}
	}
}

// All that a person has asked is deleted by a command at one node, whichever run it.
func (p *passed) erased() {
	const who = "maria"
	var ids []string
	for _, n := range []*harness.Node{p.here, p.there, p.here, p.there} {
		s := p.send(n, "POST", "/discovery/v2/assistant/"+p.harbour.Domain+"/message", p.harbour.Assistant,
			strings.Replace(question("When does the ferry leave?", ""), "user-1", who, 1)).want(200)
		ids = append(ids, s.header.Get("X-Thread-Id"))
		p.runs(n, ids[len(ids)-1])
	}
	harness.Docent(p.t, "thread", "delete", "--project", p.harbour.ID, "--fp", who, "--data", p.here.Data)
	for _, id := range ids {
		p.both("GET", "/v1/analytics/"+p.harbour.ID+"/assistant/threads/"+id, p.harbour.Admin, "").want(404)
	}
}

// Who does not have the secret says nothing to a node, whatever it says it is.
func (p *passed) strangers() {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"node.docent.internal"},
		NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, key)
	if err != nil {
		p.t.Fatal(err)
	}
	inner := p.there.Flags[slices.Index(p.there.Flags, "--node-listen")+1]
	for name, certificates := range map[string][]tls.Certificate{"no key": nil, "a key of its own": {{Certificate: [][]byte{der},
		PrivateKey: key}}} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ServerName: "node.docent.internal",
			Certificates: certificates}}
		req, _ := http.NewRequestWithContext(p.t.Context(), "GET", "https://"+inner+"/readyz", nil)
		req.Header.Set("Docent-Node-Entry", "edge")
		res, err := transport.RoundTrip(req)
		if err == nil {
			res.Body.Close()
			p.t.Errorf("with %s: %s", name, res.Status)
		} else if !strings.Contains(err.Error(), "tls:") {
			p.t.Errorf("with %s: %v", name, err)
		}
		transport.CloseIdleConnections()
	}
}
