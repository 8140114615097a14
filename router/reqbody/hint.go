package reqbody

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	"docent/api"
)

// event is what a code host calls the event that it delivers, in lower case. Gitea sends GitHub's name too, and its own
// of the kinds of a review's comments.
func event(h http.Header) string {
	for _, name := range []string{"X-GitHub-Event", "X-Gitea-Event", "X-Forgejo-Event", "X-Gitlab-Event"} {
		if v := h.Get(name); v != "" {
			return strings.ToLower(v)
		}
	}
	return ""
}

// DecodeHint reads which pull request an event is about: a comment, a review, or that it was merged, closed or opened
// again. It is false for any other event. What the event says beside that is not read: it is for the host's API to tell.
func DecodeHint(h http.Header, raw []byte) (api.PullHint, bool) {
	name := event(h)
	about := false
	for _, part := range []string{"comment", "review", "pull_request", "note hook", "merge request hook"} {
		about = about || strings.Contains(name, part)
	}
	if !about {
		return api.PullHint{}, false
	}
	type numbered struct {
		Number int `json:"number"`
		IID    int `json:"iid"` // GitLab's
	}
	var body struct {
		Number int      `json:"number"`
		Issue  numbered `json:"issue"` // a pull request is one too
		Pull   numbered `json:"pull_request"`
		Merge  numbered `json:"merge_request"` // of a comment at GitLab
		Kind   string   `json:"object_kind"`
		Object numbered `json:"object_attributes"`

		Repository struct {
			FullName string `json:"full_name"`
		} `json:"repository"`
		Project struct {
			Path string `json:"path_with_namespace"`
		} `json:"project"`
	}
	if json.Unmarshal(raw, &body) != nil {
		return api.PullHint{}, false
	}
	hint := api.PullHint{Event: name, Repository: cmp.Or(body.Repository.FullName, body.Project.Path),
		Number: cmp.Or(body.Pull.Number, body.Issue.Number, body.Merge.IID)}
	if hint.Number == 0 && body.Kind == "merge_request" {
		hint.Number = body.Object.IID
	}
	hint.Number = cmp.Or(hint.Number, body.Number)
	return hint, hint.Number > 0 && hint.Repository != "" && len(hint.Repository) <= 500 && !control(hint.Repository, false)
}
