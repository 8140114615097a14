package reqbody

import (
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"

	"docent/api"
)

// DecodePush reads what all the hosts say of a push. It is false for anything but a push to a branch that is still
// there.
func DecodePush(h http.Header, raw []byte) (api.Push, bool, error) {
	if _, err := parse(raw); err != nil {
		return api.Push{}, false, err
	}
	if name := event(h); name != "push" && name != "push hook" {
		return api.Push{}, false, nil
	}
	var body struct {
		Ref        string `json:"ref"`
		After      string `json:"after"`
		Repository struct {
			FullName string `json:"full_name"`
			Default  string `json:"default_branch"`
		} `json:"repository"`
		Project struct { // GitLab
			Path    string `json:"path_with_namespace"`
			Default string `json:"default_branch"`
		} `json:"project"`
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		return api.Push{}, false, &api.InvalidError{Problems: []api.Problem{
			{Field: "body", Message: "does not have the form of a push event"}}}
	}
	branch, ok := strings.CutPrefix(body.Ref, "refs/heads/")
	if !ok && body.Ref != "" {
		return api.Push{}, false, nil // a tag
	}
	push := api.Push{Repository: body.Repository.FullName, Branch: branch, Commit: body.After}
	main := body.Repository.Default
	if push.Repository == "" {
		push.Repository, main = body.Project.Path, body.Project.Default
	}
	push.Default = branch != "" && branch == main
	var ps Problems
	if branch == "" || !api.ValidBranch(branch) {
		ps.Add("ref", "must name a branch: refs/heads/…")
	}
	if !commitHash(push.Commit) {
		ps.Add("after", "must be the hash of a commit")
	}
	if push.Repository == "" || len(push.Repository) > 500 || control(push.Repository, false) {
		ps.Add("repository", "must have the repository's full name")
	}
	if err := ps.Err(); err != nil {
		return api.Push{}, false, err
	}
	return push, strings.Trim(push.Commit, "0") != "", nil
}

// commitHash reports whether s can be the name of a commit, SHA-1 or SHA-256.
func commitHash(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil && (len(s) == 40 || len(s) == 64)
}
