package router_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"docent/api"
)

func signature(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

const (
	someUpdate = "upd_01JD8Q7W3N5YB2K4M6P8R0S2T4V6X8"
	hash       = "0123456789abcdef0123456789abcdef01234567"
	webhook    = "/v1/webhook/acme/push"
	githubPush = `{"ref":"refs/heads/main","before":"x","after":"` + hash +
		`","repository":{"full_name":"acme/docs","default_branch":"main"},"commits":[]}`
	gitlabPush = `{"object_kind":"push","ref":"refs/heads/next/1","after":"` + hash +
		`","project":{"path_with_namespace":"acme/sub/docs","default_branch":"main"},"repository":{"name":"docs"}}`
	githubOther = `{"ref":"refs/tags/v1","after":"` + hash + `","repository":{"full_name":"acme/docs"}}`
)

func TestPushesOfEachCodeHostAreTakenIn(t *testing.T) {
	h := build(t)
	h.pushes.update = someUpdate
	for _, headers := range [][]string{
		{"X-GitHub-Event", "push", "X-Hub-Signature-256", "sha256=" + signature("sesame", githubPush)},
		// Gitea sends the others' headers too.
		{"X-Gitea-Event", "push", "X-GitHub-Event", "push", "X-Gitea-Signature", signature("sesame", githubPush),
			"X-Hub-Signature-256", "sha256=" + signature("sesame", githubPush)},
		{"X-Forgejo-Event", "push", "X-Forgejo-Signature", signature("sesame", githubPush)},
	} {
		if got := h.json(202, "POST", webhook, "", githubPush, headers...); got["statusId"] != someUpdate {
			t.Errorf("%q: %v", headers, got)
		}
	}
	h.pushes.update = ""
	if got := h.json(202, "POST", webhook, "", gitlabPush, "X-Gitlab-Event", "Push Hook", "X-Gitlab-Token",
		"sesame"); got["statusId"] != nil {
		t.Errorf("%v", got)
	}
	want := api.Push{Repository: "acme/docs", Branch: "main", Default: true, Commit: hash}
	if got := h.pushes.got; !reflect.DeepEqual(got, []api.Push{want, want, want,
		{Repository: "acme/sub/docs", Branch: "next/1", Commit: hash}}) {
		t.Errorf("%+v", got)
	}

	// What is no push to a branch is taken without ado.
	gone := strings.Replace(githubPush, hash, strings.Repeat("0", 40), 1)
	for event, body := range map[string]string{"ping": `{"zen":"x"}`, "push": githubOther, "issues": githubPush,
		"Push": gone} {
		h.text(204, "POST", webhook, "", body, "X-GitHub-Event", event, "X-Hub-Signature-256",
			"sha256="+signature("sesame", body))
	}
	if len(h.pushes.got) != 4 {
		t.Errorf("%d pushes", len(h.pushes.got))
	}
	h.pushes.refuse = fmt.Errorf("x: %w", api.ErrUnavailable)
	h.json(503, "POST", webhook, "", githubPush, "X-GitHub-Event", "push", "X-Hub-Signature-256",
		"sha256="+signature("sesame", githubPush))
}

func TestAPushThatIsNotSignedRightlyIsRefused(t *testing.T) {
	h := build(t)
	good := "sha256=" + signature("sesame", githubPush)
	for name, c := range map[string]struct {
		path    string
		headers []string
	}{
		"no signature":   {webhook, nil},
		"another secret": {webhook, []string{"X-Hub-Signature-256", "sha256=" + signature("open", githubPush)}},
		"another body":   {webhook, []string{"X-Hub-Signature-256", "sha256=" + signature("sesame", gitlabPush)}},
		"no hex":         {webhook, []string{"X-Hub-Signature-256", "sha256=zz"}},
		"cut off":        {webhook, []string{"X-Hub-Signature-256", good[:30]}},
		"an empty token": {webhook, []string{"X-Gitlab-Token", " "}},
		"another token":  {webhook, []string{"X-Gitlab-Token", "sesam"}},
		"one right, one wrong": {webhook, []string{"X-Hub-Signature-256", good, "X-Gitea-Signature",
			signature("open", githubPush)}},
		"a key in its place": {webhook, []string{"Authorization", "Bearer " + h.admin}},
		"a project without one": {"/v1/webhook/acme-two/push",
			[]string{"X-Hub-Signature-256", "sha256=" + signature("", githubPush)}},
		"a project there is not": {"/v1/webhook/nowhere/push", []string{"X-Hub-Signature-256", good}},
	} {
		got := h.json(401, "POST", c.path, "", githubPush, append(c.headers, "X-GitHub-Event", "push")...)
		if !strings.Contains(got["error"].(string), "not signed") {
			t.Errorf("%s: %v", name, got)
		}
	}
	if len(h.pushes.got) != 0 {
		t.Errorf("%+v", h.pushes.got)
	}
	for name, c := range map[string]struct {
		body, code, fields string
		status             int
		headers            []string
	}{
		"no JSON": {body: "payload=x", code: "unsupported_media_type", status: 415,
			headers: []string{"Content-Type", "application/x-www-form-urlencoded"}},
		"broken JSON": {body: "{", code: "invalid_json", fields: "body", status: 400},
		"an array":    {body: "[]", code: "invalid_request", fields: "body", status: 400},
		"no fields":   {body: "{}", code: "invalid_request", fields: "ref after repository", status: 400},
		"bad fields": {body: `{"ref":"refs/heads/a..b","after":"HEAD","repository":{"full_name":"a\u0000b"}}`,
			code: "invalid_request", fields: "ref after repository", status: 400},
	} {
		got := h.json(c.status, "POST", webhook, "", c.body, append(c.headers, "X-GitHub-Event", "push",
			"X-Hub-Signature-256", "sha256="+signature("sesame", c.body))...)
		var fields []string
		if details, ok := got["details"].([]any); ok {
			for _, d := range details {
				fields = append(fields, d.(map[string]any)["field"].(string))
			}
		}
		if got["code"] != c.code || strings.Join(fields, " ") != c.fields {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestDeliveriesToAWebhookAreRemembered sends what is taken in, what is no push, what is refused, and what the console
// sends to try the webhook.
func TestDeliveriesToAWebhookAreRemembered(t *testing.T) {
	h := build(t)
	h.pushes.update = someUpdate
	good := []string{"X-GitHub-Event", "push", "X-Hub-Signature-256", "sha256=" + signature("sesame", githubPush)}
	h.json(202, "POST", webhook, "", githubPush, good...)
	h.text(204, "POST", webhook, "", `{"zen":"x"}`, "X-GitHub-Event", "ping", "X-Hub-Signature-256",
		"sha256="+signature("sesame", `{"zen":"x"}`))
	h.json(401, "POST", webhook, "", githubPush, "X-Gitlab-Event", "Push Hook", "X-Gitlab-Token", "open")
	h.json(202, "POST", webhook, "", githubPush, append(good, "X-Docent-Test", "1")...)
	h.json(401, "POST", "/v1/webhook/acme-two/push", "", githubPush, good...) // has no secret
	list := h.pushes.delivered
	if len(list) != 3 {
		t.Fatalf("%+v", list)
	}
	if d := list[0]; !d.Accepted() || d.Sender != "GitHub" || d.Branch != "main" || d.Commit != hash || d.Update != someUpdate {
		t.Errorf("a push: %+v", d)
	}
	if d := list[1]; !d.Accepted() || d.Event != "ping" || d.Update != "" || !strings.Contains(d.Outcome, "no push") {
		t.Errorf("a ping: %+v", d)
	}
	if d := list[2]; d.Accepted() || d.Sender != "Gitlab" || !strings.Contains(d.Outcome, "not signed") ||
		strings.Contains(fmt.Sprint(d), "open") {
		t.Errorf("one that is refused: %+v", d)
	}
}

// TestEventsOfPullRequestsAreHints sends what each code host says of comments, reviews and the end of pull requests.
func TestEventsOfPullRequestsAreHints(t *testing.T) {
	h := build(t)
	repository := `"repository":{"full_name":"acme/docs"}`
	send := func(body string, headers ...string) {
		t.Helper()
		h.text(204, "POST", webhook, "", body, append(headers, "X-Hub-Signature-256", "sha256="+signature("sesame", body))...)
	}
	send(`{"action":"created","issue":{"number":1,"pull_request":{}},"comment":{"body":"@docent x"},`+repository+`}`,
		"X-GitHub-Event", "issue_comment")
	send(`{"action":"created","pull_request":{"number":2},`+repository+`}`, "X-GitHub-Event", "pull_request_review_comment")
	send(`{"action":"submitted","pull_request":{"number":3},`+repository+`}`, "X-GitHub-Event", "pull_request_review")
	send(`{"action":"closed","number":4,"pull_request":{"number":4,"merged":true},`+repository+`}`,
		"X-GitHub-Event", "pull_request")
	send(`{"action":"created","is_pull":true,"issue":{"number":5},`+repository+`}`, "X-Gitea-Event", "issue_comment",
		"X-GitHub-Event", "issue_comment")
	send(`{"action":"reviewed","number":6,"pull_request":{"number":6},`+repository+`}`,
		"X-Gitea-Event", "pull_request_review_comment")
	for _, body := range []string{
		`{"object_kind":"note","merge_request":{"iid":7,"id":99},"object_attributes":{"id":9,"noteable_type":"MergeRequest"},"project":{"path_with_namespace":"acme/docs"}}`,
		`{"object_kind":"merge_request","object_attributes":{"iid":8,"id":99,"state":"merged"},"project":{"path_with_namespace":"acme/docs"}}`,
	} {
		event := "Note Hook"
		if strings.Contains(body, "merged") {
			event = "Merge Request Hook"
		}
		h.text(204, "POST", webhook, "", body, "X-Gitlab-Event", event, "X-Gitlab-Token", "sesame")
	}
	var numbers []int
	for _, hint := range h.pushes.hints {
		numbers = append(numbers, hint.Number)
		if hint.Repository != "acme/docs" {
			t.Errorf("%+v", hint)
		}
	}
	if fmt.Sprint(numbers) != "[1 2 3 4 5 6 7 8]" {
		t.Errorf("hints at %v", numbers)
	}
	last := h.pushes.delivered[len(h.pushes.delivered)-1]
	if !strings.Contains(last.Outcome, "#8 is looked at") || last.Status != 204 {
		t.Errorf("remembered is %+v", last)
	}

	// What is about no pull request, and what is not signed, is none.
	send(`{"issue":{"number":-1},`+repository+`}`, "X-GitHub-Event", "issue_comment")
	send(`{"issue":{"number":9}}`, "X-GitHub-Event", "issue_comment")
	send(`{"issue":{"number":"9"},`+repository+`}`, "X-GitHub-Event", "issue_comment")
	send(`{"number":9,`+repository+`}`, "X-GitHub-Event", "release")
	send(`{"object_kind":"note","object_attributes":{"iid":9},"project":{"path_with_namespace":"acme/docs"}}`,
		"X-GitHub-Event", "note hook") // of a commit
	h.json(401, "POST", webhook, "", `{"issue":{"number":9},`+repository+`}`, "X-GitHub-Event", "issue_comment",
		"X-Hub-Signature-256", "sha256="+signature("open", "x"))
	if len(h.pushes.hints) != 8 {
		t.Errorf("further hints: %+v", h.pushes.hints[8:])
	}
	send(`{"issue":{"number":99},`+repository+`}`, "X-GitHub-Event", "issue_comment")
	if last := h.pushes.delivered[len(h.pushes.delivered)-1]; !strings.Contains(last.Outcome, "no pull request of a job") {
		t.Errorf("remembered is %+v", last)
	}
}
