package kill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/api"
	"docent/api/client"
	"docent/api/stream"
	"docent/tests/harness"
)

// A witness remembers what clients sent and what they were told, over all lives of the server.
type witness struct {
	t *testing.T

	mu        sync.Mutex
	jobs      []*seenJob
	maybe     map[string]int // pages of creations whose answer was lost, with the times that they were sent
	questions []*seenQuestion
	finished  map[string]string // answers that were seen finished, by the tag of the question
	retries   map[string]int    // sendings of a question whose answer was lost, by its tag
	uses      map[string]*used  // by the name of what they count against
	refused   map[string]int    // answers with 503 and 429, by code
	lost      int               // requests whose answer was lost
	faults    int               // things that no client may see
}

// used is what a quota may have counted: for each request that was acknowledged the time before which it was not sent,
// and how many answers were lost.
type used struct {
	acknowledged []time.Time
	lost         []time.Time
}

// A seenJob is a job that was acknowledged.
type seenJob struct {
	project   harness.Project
	id        api.JobID
	page      string
	lines     []int // follow-ups that were acknowledged, in the order sent
	maybe     []int // whose answer was lost
	link      string
	ended     api.JobStatus // as last seen
	abandoned bool          // nobody waited for its end
}

// A seenQuestion is a question whose response header was received.
type seenQuestion struct {
	tag      string
	thread   api.ThreadID
	text     string
	finished bool
	answer   string
	ended    time.Time // when its reader had seen it finish
	left     bool      // its reader went away
	broke    string    // why its reader did not see it finish
	died     time.Time // when the node that ran it died last, before that
	turn     string    // as the journal has it
}

func newWitness(t *testing.T) *witness {
	return &witness{t: t, maybe: map[string]int{}, finished: map[string]string{}, retries: map[string]int{},
		uses: map[string]*used{}, refused: map[string]int{}}
}

// wrong reports what no client may see. After many, more of them tell nothing new.
func (w *witness) wrong(format string, args ...any) {
	w.mu.Lock()
	w.faults++
	n := w.faults
	w.mu.Unlock()
	if n <= 30 {
		w.t.Errorf(format, args...)
	}
}

func (w *witness) count(quota string, sent time.Time, acknowledged bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	u := w.uses[quota]
	if u == nil {
		u = new(used)
		w.uses[quota] = u
	}
	if acknowledged {
		u.acknowledged = append(u.acknowledged, sent)
	} else {
		u.lost = append(u.lost, sent)
		w.lost++
	}
}

// finishedBefore is the answer to the question before this one in its thread, where its reader saw it finish.
func (w *witness) finishedBefore(tag string) (string, bool) {
	head, n, ok := cutLast(tag, ".")
	if !ok {
		return "", false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	text, ok := w.finished[fmt.Sprintf("%s.%d", head, harness.Atoi(n)-1)]
	return text, ok
}

func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// A visitor is one client. It goes on through all lives of the server, as a program with retries does.
type visitor struct {
	*witness
	hard     context.Context // ends with the test; what is sent and not answered is sent again until then
	server   *harness.Server
	random   *rand.Rand
	number   int
	think    time.Duration
	projects []harness.Project // whose jobs it makes
	metered  harness.Project   // whose quota is small
	done     int
}

func (v *visitor) client(key string) *client.Client {
	return &client.Client{Base: v.server.URL, Key: key, HTTP: visitors}
}

// visitors share connections, as far as kills leave any. A request that gets no answer in this time has hung.
var visitors = &http.Client{Timeout: 90 * time.Second,
	Transport: &http.Transport{MaxIdleConnsPerHost: 512, IdleConnTimeout: time.Minute}}

// visit does one thing after the other until ctx ends. It ends what it has begun.
func (v *visitor) visit(ctx context.Context) {
	for v.pause(ctx, v.think) {
		v.done++
		switch n := v.random.IntN(100); {
		case n < 40:
			v.makeJob(ctx, v.projects[v.random.IntN(len(v.projects))])
		case n < 90:
			v.converse(ctx, v.projects[0])
		case n < 95:
			v.meter()
		default:
			v.list(ctx, v.projects[0])
		}
	}
}

// pause waits about that long, and says whether to go on.
func (v *visitor) pause(ctx context.Context, about time.Duration) bool {
	timer := time.NewTimer(about/4 + time.Duration(v.random.Int64N(int64(about)*3/2+1)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// What became of a request.
type fate int

const (
	acknowledged fate = iota
	refused           // the server said that it did not take it
	unknown           // no answer, or not a whole one
	denied            // an answer that the test does not expect; it is reported
)

// judge sorts an error of a request.
func (v *visitor) judge(doing string, err error) fate {
	if err == nil {
		return acknowledged
	}
	if v.hard.Err() != nil {
		return unknown
	}
	var said *client.Error
	if !errors.As(err, &said) {
		var late interface{ Timeout() bool }
		if errors.As(err, &late) && late.Timeout() {
			v.wrong("%s: no answer for %v: %v", doing, visitors.Timeout, err)
		}
		return unknown
	}
	if said.Status == http.StatusServiceUnavailable || said.Status == http.StatusTooManyRequests {
		v.mu.Lock()
		v.refused[said.Code]++
		v.mu.Unlock()
		return refused
	}
	v.wrong("%s: %v", doing, err)
	return denied
}

// insist sends a request that changes something until it is acknowledged. What is sent again bears the same key, so it
// must not be done again.
func (v *visitor) insist(quota, doing string, p harness.Project, path string, body any, key string) (j api.Job,
	ok bool) {
	for {
		sent := time.Now()
		var once []client.Option
		if key != "" {
			once = append(once, client.IdempotencyKey(key))
		}
		j = api.Job{}
		switch v.judge(doing, v.client(p.Admin).Post(v.hard, path, body, &j, once...)) {
		case acknowledged:
			v.count(quota, sent, true)
			return j, true
		case unknown:
			v.count(quota, sent, false)
			if key == "" {
				return j, false
			}
		case denied:
			return j, false
		case refused:
		}
		if !v.pause(v.hard, 200*time.Millisecond) {
			return j, false
		}
	}
}

// makeJob creates a job, follows up on it, and mostly waits for its end.
func (v *visitor) makeJob(ctx context.Context, p harness.Project) {
	name := fmt.Sprintf("made/v%d-%d.md", v.number, v.done)
	key := ""
	if v.random.IntN(4) > 0 {
		key = "create/" + name
	}
	body := map[string]string{"prompt": fmt.Sprintf(`create page %s titled "Page %d %d" with content: "made by job"`, name,
		v.number, v.done), "model": "builtin"}
	if v.random.IntN(2) == 0 {
		body["model"] = "worker"
	}
	made, ok := v.insist(p.ID, "create "+name, p, "/v2/agent/"+p.ID+"/job", body, key)
	if !ok {
		v.mu.Lock()
		v.maybe[p.ID+" "+name]++
		v.mu.Unlock()
		return
	}
	j := &seenJob{project: p, id: made.ID, page: name, ended: made.Status}
	v.mu.Lock()
	v.jobs = append(v.jobs, j)
	v.mu.Unlock()
	for line := range v.random.IntN(4) {
		line++
		if v.random.IntN(2) == 0 && !v.watch(ctx, j, 2) {
			break
		}
		key := ""
		if v.random.IntN(4) > 0 {
			key = fmt.Sprintf("follow/%s/%d", name, line)
		}
		body := map[string]string{"prompt": fmt.Sprintf(`append "line %d of follow-ups" to %s`, line, name)}
		v.mu.Lock()
		j.ended = api.JobActive
		v.mu.Unlock()
		answer, ok := v.insist(p.ID, fmt.Sprintf("follow-up %d of %s", line, name), p, "/v2/agent/"+p.ID+"/job/"+string(j.id)+
			"/message", body, key)
		v.mu.Lock()
		if ok {
			j.lines = append(j.lines, line)
		} else {
			j.maybe = append(j.maybe, line)
		}
		v.mu.Unlock()
		if ok && key == "" && answer.Status != api.JobActive { // one that comes again may be answered long after
			v.wrong("follow-up %d of %s was answered with status %s", line, name, answer.Status)
		}
		if !ok {
			break
		}
	}
	if v.random.IntN(10) == 0 || !v.watch(ctx, j, 40) {
		v.mu.Lock()
		j.abandoned = true
		v.mu.Unlock()
	}
}

// watch polls a job until it has ended, for at most so many times. What it says must not be taken back.
func (v *visitor) watch(ctx context.Context, j *seenJob, times int) (there bool) {
	for range times {
		var now api.Job
		err := v.client(j.project.Admin).Get(ctx, "/v2/agent/"+j.project.ID+"/job/"+string(j.id)+"?wait=3", &now)
		if ctx.Err() != nil {
			return false
		}
		if v.judge(fmt.Sprintf("read job %s, which was acknowledged", j.id), err) != acknowledged {
			if !v.pause(ctx, 200*time.Millisecond) {
				return false
			}
			continue
		}
		v.mu.Lock()
		before, link := j.ended, j.link
		j.ended = now.Status
		if now.PRLink != nil {
			j.link = *now.PRLink
		}
		unsure := len(j.maybe) > 0
		v.mu.Unlock()
		if now.ID != j.id {
			v.wrong("job %s was answered for %s", now.ID, j.id)
		}
		if before != api.JobActive && now.Status != before && !unsure {
			v.wrong("job %s was seen %s and then %s", j.id, before, now.Status)
		}
		if link != "" && (now.PRLink == nil || *now.PRLink != link) {
			v.wrong("job %s had the pull request %s and then %s", j.id, link, shownLink(now.PRLink))
		}
		if now.Status != api.JobActive {
			return true
		}
	}
	return true
}

func shownLink(link *string) string {
	if link == nil {
		return "none"
	}
	return *link
}

// meter uses up a quota that is small.
func (v *visitor) meter() {
	name := fmt.Sprintf("metered/v%d-%d.md", v.number, v.done)
	sent := time.Now()
	var made api.Job
	err := v.client(v.metered.Admin).Post(v.hard, "/v2/agent/"+v.metered.ID+"/job",
		map[string]string{"prompt": fmt.Sprintf(`create page %s titled "Metered" with content: "made by job"`, name),
			"model": "builtin"}, &made)
	switch v.judge("create "+name, err) {
	case acknowledged:
		v.count(v.metered.ID, sent, true)
		v.mu.Lock()
		v.jobs = append(v.jobs, &seenJob{project: v.metered, id: made.ID, page: name, ended: made.Status, abandoned: true})
		v.mu.Unlock()
	case unknown:
		v.count(v.metered.ID, sent, false)
		v.mu.Lock()
		v.maybe[v.metered.ID+" "+name]++
		v.mu.Unlock()
	case refused, denied:
	}
}

// list reads a page of the listing.
func (v *visitor) list(ctx context.Context, p harness.Project) {
	var page struct {
		Jobs []api.Job `json:"jobs"`
	}
	if err := v.client(p.Admin).Get(ctx, "/v2/agent/"+p.ID+"/jobs?limit=100", &page); ctx.Err() != nil ||
		v.judge("list", err) != acknowledged {
		return
	}
	listed := map[api.JobID]bool{}
	for _, j := range page.Jobs {
		if listed[j.ID] {
			v.wrong("job %s is listed twice", j.ID)
		}
		listed[j.ID] = true
	}
	if !slices.IsSortedFunc(page.Jobs, func(a, b api.Job) int { return strings.Compare(string(b.ID), string(a.ID)) }) {
		v.wrong("jobs are not listed newest first")
	}
}

// converse asks up to three questions in one thread.
func (v *visitor) converse(ctx context.Context, p harness.Project) {
	chat := fmt.Sprintf("chat-%d-%d", v.number, v.done)
	var thread api.ThreadID
	for n := range 1 + v.random.IntN(3) {
		if n > 0 && !v.pause(ctx, v.think/4) {
			return
		}
		tag := fmt.Sprintf("%d.%d.%d", v.number, v.done, n)
		q := &seenQuestion{tag: tag, text: fmt.Sprintf("How much are tickets for the ferry? (q %s)", tag)}
		resp := v.put(p, q, chat, thread)
		if resp == nil {
			return
		}
		q.thread = api.ThreadID(resp.Header.Get("X-Thread-Id"))
		if q.thread == "" || thread != "" && q.thread != thread {
			v.wrong("question %s went to thread %q, not %q", tag, q.thread, thread)
		}
		thread = q.thread
		v.mu.Lock()
		v.questions = append(v.questions, q)
		v.mu.Unlock()
		switch n := v.random.IntN(10); {
		case n == 0: // leaves in the middle
			decoder := stream.NewDecoder(stream.UIMessages, resp.Body)
			for range v.random.IntN(4) {
				_, _ = decoder.Next()
			}
			resp.Body.Close()
			v.mu.Lock()
			q.left = true
			v.mu.Unlock()
		default:
			text, err := harness.ReadAnswer(resp)
			if err != nil && n < 6 {
				text, err = v.resume(ctx, p, thread)
			}
			v.mu.Lock()
			if err == nil {
				q.finished, q.answer, q.ended = true, text, time.Now()
				v.finished[tag] = text
			} else {
				q.left, q.broke = n >= 6 || ctx.Err() != nil, err.Error()
			}
			v.mu.Unlock()
		}
	}
}

// put sends a question until its response header is there. What is sent again bears the same id.
func (v *visitor) put(p harness.Project, q *seenQuestion, chat string, thread api.ThreadID) *http.Response {
	body := map[string]any{"id": chat, "fp": "anonymous", "messages": []any{
		map[string]any{"id": "m-" + q.tag, "role": "user", "parts": []any{map[string]any{"type": "text", "text": q.text}}}}}
	if thread != "" {
		body["threadId"] = thread
	}
	for {
		sent := time.Now()
		resp, err := v.client(p.Assistant).Do(v.hard, http.MethodPost, "/discovery/v2/assistant/"+p.Domain+"/message", body)
		switch v.judge("ask "+q.tag, err) {
		case acknowledged:
			v.count("questions", sent, true)
			return resp
		case unknown:
			v.count("questions", sent, false)
			v.mu.Lock()
			v.retries[q.tag]++
			v.mu.Unlock()
		case denied:
			return nil
		case refused:
		}
		if !v.pause(v.hard, 200*time.Millisecond) {
			return nil
		}
	}
}

// resume reads the answer again from its start, over as many lives of the server as it takes.
func (v *visitor) resume(ctx context.Context, p harness.Project, thread api.ThreadID) (string, error) {
	for gives := time.Now().Add(time.Minute); time.Now().Before(gives); { // up, later than any server takes to come back
		if !v.pause(ctx, 200*time.Millisecond) {
			return "", ctx.Err()
		}
		resp, err := v.client(p.Assistant).Do(ctx, http.MethodGet, "/discovery/v2/assistant/"+p.Domain+"/message/"+
			string(thread)+"/stream", nil)
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if v.judge("resume "+string(thread), err) != acknowledged {
			continue
		}
		if resp.StatusCode == http.StatusNoContent {
			resp.Body.Close()
			return "", errors.New("there is no stream to resume")
		}
		text, err := harness.ReadAnswer(resp)
		var broken interface{ Unwrap() error }
		if err == nil || !errors.Is(err, io.ErrUnexpectedEOF) && !errors.As(err, &broken) {
			return text, err
		}
	}
	return "", errors.New("the stream did not come to its end")
}
