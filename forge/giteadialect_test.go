package forge_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"docent/api"
	"docent/forge"
	"docent/forge/forgetest"
	"docent/forge/forgetest/giteatest"
)

// A giteaSide is a Gitea, real or played, with a job's pull request.
type giteaSide struct {
	base, token, reader string
	comment, line       int64 // one in the conversation, and one on a line
	project             api.Project
}

func (g giteaSide) ask(t *testing.T, token, method, path, body string) (status int, answer any) {
	t.Helper()
	var sent io.Reader
	if body != "" {
		sent = bytes.NewReader([]byte(body))
	}
	req, err := http.NewRequestWithContext(t.Context(), method, g.base+"/api/v1/repos/"+g.project.Repository+path, sent)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "token "+token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > 0 && json.Unmarshal(data, &answer) != nil {
		t.Errorf("%s %s answers with %.200s", method, path, data)
	}
	return res.StatusCode, answer
}

// shape is what kinds of values an answer has under the fields that Docent reads.
func shape(v any, fields []string) string {
	switch v := v.(type) {
	case map[string]any:
		var out []string
		for _, f := range fields {
			if x, ok := v[f]; ok {
				out = append(out, f+":"+shape(x, fields))
			}
		}
		return "{" + strings.Join(out, " ") + "}"
	case []any:
		if len(v) == 0 {
			return "[]"
		}
		return "[" + shape(v[0], fields) + "]"
	case nil:
		return "null"
	}
	return fmt.Sprintf("%T", v)
}

// TestTheStandInAnswersAsARealGiteaDoes puts the same requests to both: the tests that play Gitea's faults are worth as
// much as this.
func TestTheStandInAnswersAsARealGiteaDoes(t *testing.T) {
	real := giteatest.Start(t)
	g := onGitea(t, real, "docs", quick)
	onReal := giteaSide{base: g.URL, token: real.Token(t, g.Owner), reader: real.Token(t, g.bob), project: g.rig.project}
	publishFirst(t, g.rig)
	onReal.comment = g.Say(t, g.ann, 1, "Hello").ID
	review := g.Review(t, g.ann, 1, false, "In all, fine.",
		giteatest.LineComment{Path: "guide/setup.md", Line: 3, Body: "Here"})
	var lines []giteatest.Comment
	g.Call(t, g.Owner.Token, http.MethodGet, g.Path("/pulls/1/reviews/%d/comments", review), nil, &lines)
	onReal.line = lines[0].ID

	s, p := standIn(t, api.HostGitea)
	h := comment(t, s, open(t, t.TempDir(), p, &forgetest.Pulls{}, quick))
	s.Do(func() { s.ReadOnly, s.NoReplies = []string{"reader"}, true }) // as the version that is built
	onPlay := giteaSide{base: s.URL, token: hostToken, reader: "reader", project: p}
	onPlay.comment = s.Say(h.number, "ann", "Hello")
	played := s.Draft(1, "ann", "In all, fine.", forgetest.StandInComment{Path: "guide/setup.md", Line: 3, Hunk: hunk,
		Body: "Here"})
	s.Submit(played)
	onPlay.line = s.Said(1)[1].ID

	fields := strings.Fields("id full_name archived permissions push number title body state merged draft html_url " +
		"labels name head base label ref sha repo_id user login created_at updated_at path position original_position diff_hunk " +
		"comments_count submitted_at permission message")
	for _, c := range []struct {
		who, method, path, body string
		onlyStatus              bool
	}{
		{who: "token", method: "GET", path: ""},
		{who: "token", method: "GET", path: "/pulls/1"},
		{who: "token", method: "GET", path: "/pulls/4711"},
		{who: "token", method: "GET", path: "/pulls?state=open&limit=50&page=1"},
		{who: "token", method: "GET", path: "/pulls?state=open&limit=50&page=2"},
		{who: "token", method: "GET", path: "/pulls/main/docent/job_1"},
		{who: "token", method: "GET", path: "/pulls/main/docent/job_2"},
		{who: "token", method: "POST", path: "/pulls", body: `{"title":"x","head":"docent/job_1","base":"main"}`},
		{who: "token", method: "POST", path: "/pulls", body: `{"title":"x","head":"nowhere","base":"main"}`},
		{who: "token", method: "POST", path: "/pulls", body: `{"title":"x","head":"main","base":"main"}`, onlyStatus: true},
		{who: "token", method: "PATCH", path: "/pulls/1", body: `{"body":"changed"}`},
		{who: "token", method: "PATCH", path: "/pulls/4711", body: `{"body":"changed"}`},
		{who: "reader", method: "PATCH", path: "/pulls/1", body: `{"body":"changed"}`, onlyStatus: true},
		{who: "token", method: "GET", path: "/issues/1/comments"},
		{who: "token", method: "GET", path: "/issues/1/comments?since=2126-01-01T00:00:00Z"},
		{who: "token", method: "GET", path: "/issues/4711/comments", onlyStatus: true},
		{who: "token", method: "GET", path: "/pulls/1/reviews?page=1&limit=50"},
		{who: "token", method: "GET", path: "/pulls/1/reviews?page=2&limit=50"},
		{who: "token", method: "GET", path: "/pulls/4711/reviews", onlyStatus: true},
		{who: "token", method: "GET", path: "/pulls/1/reviews/REVIEW/comments"},
		{who: "token", method: "GET", path: "/pulls/1/reviews/4711/comments", onlyStatus: true},
		{who: "token", method: "GET", path: "/collaborators/ann/permission"},
		{who: "token", method: "GET", path: "/collaborators/bob/permission"},
		{who: "token", method: "GET", path: "/collaborators/nobody-of-that-name/permission", onlyStatus: true},
		{who: "reader", method: "GET", path: "/collaborators/ann/permission", onlyStatus: true},
		{who: "token", method: "GET", path: "/assignees"},
		{who: "token", method: "POST", path: "/issues/1/comments", body: `{"body":"Answer"}`},
		{who: "token", method: "POST", path: "/issues/1/comments", body: `{"body":""}`, onlyStatus: true},
		{who: "token", method: "POST", path: "/pulls/1/comments/LINE/replies", body: `{"body":"Answer"}`, onlyStatus: true},
		{who: "token", method: "POST", path: "/issues/1/labels", body: `{"labels":["not there"]}`, onlyStatus: true},
		{who: "token", method: "POST", path: "/pulls/1/requested_reviewers", body: `{"reviewers":["bob"],"team_reviewers":[]}`, onlyStatus: true},
		{who: "token", method: "GET", path: "/pulls/1/reviews?page=1&limit=50"},
		{who: "token", method: "POST", path: "/pulls/1/requested_reviewers", body: `{"reviewers":["nobody-of-that-name"]}`, onlyStatus: true},
		{who: "token", method: "GET", path: "/git/commits/docent%2Fjob_1?stat=false&files=false", onlyStatus: true},
		{who: "wrong", method: "GET", path: "", onlyStatus: true},
	} {
		s.Do(func() { s.NoAdmin = c.who == "reader" })
		asked := func(side giteaSide, review int64) (int, string) {
			path := strings.NewReplacer("REVIEW", fmt.Sprint(review), "LINE", fmt.Sprint(side.line)).Replace(c.path)
			token := map[string]string{"token": side.token, "reader": side.reader, "wrong": "wrong"}[c.who]
			status, answer := side.ask(t, token, c.method, path, c.body)
			return status, shape(answer, fields)
		}
		wantStatus, want := asked(onReal, review)
		status, got := asked(onPlay, played)
		if status != wantStatus || !c.onlyStatus && got != want {
			t.Errorf("%s %s as %s:\nGitea answers     %d %s\nits stand-in says %d %s", c.method, c.path, c.who, wantStatus, want,
				status, got)
		}
	}
	archive := func(side giteaSide) int {
		status, _ := side.ask(t, side.token, "POST", "/issues/1/comments", `{"body":"late"}`)
		return status
	}
	g.Call(t, g.Owner.Token, http.MethodPatch, g.Path(""), map[string]bool{"archived": true}, nil)
	s.Do(func() { s.Archived = true })
	if want, got := archive(onReal), archive(onPlay); got != want {
		t.Errorf("in an archived repository Gitea answers %d, its stand-in %d", want, got)
	}
}

func publishFirst(t *testing.T, r *rig) forge.Published {
	t.Helper()
	done, err := r.Publish(t.Context(), forgetest.Publication(r.project, r.tip(t, "docent/job_1"), "# Set up\n\nNew.\n"))
	if err != nil {
		t.Fatal(err)
	}
	return done
}
