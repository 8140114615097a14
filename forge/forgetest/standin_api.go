package forgetest

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"docent/api"
)

// The API dialects of a StandIn. Each is called with the stand-in's lock held.

func (s *StandIn) github(x *exchange) {
	token := strings.TrimPrefix(x.r.Header.Get("Authorization"), "Bearer ")
	if x.is("GET", "repos", s.Owner, s.Name, "installation") || x.is("GET", "app") ||
		x.is("POST", "app", "installations", "*", "access_tokens") {
		s.githubApp(x, token)
		return
	}
	rights := s.rights(token)
	if rights == 0 {
		x.githubSays(http.StatusUnauthorized, "Bad credentials")
		return
	}
	if x.is("GET", "users", "*") {
		x.say(http.StatusOK, githubAccount(x.parts[1]))
		return
	}
	if len(x.parts) < 3 || x.parts[0] != "repos" || x.parts[1] != s.Owner || x.parts[2] != s.Name {
		x.githubSays(http.StatusNotFound, "Not Found")
		return
	}
	if x.r.Method != http.MethodGet {
		if rights < 2 {
			x.githubSays(http.StatusForbidden, "Resource not accessible by personal access token")
			return
		}
		if s.Archived {
			x.githubSays(http.StatusForbidden, "Repository was archived so is read-only.")
			return
		}
	}
	rest := x.parts[3:]
	switch {
	case x.is("GET", "repos", "*", "*"):
		if len(s.Scopes) > 0 {
			x.w.Header().Set("X-OAuth-Scopes", strings.Join(s.Scopes, ", "))
		}
		x.say(http.StatusOK, s.githubRepository(rights))
	case x.is("GET", "repos", "*", "*", "pulls"):
		s.githubList(x)
	case x.is("POST", "repos", "*", "*", "pulls"):
		s.githubCreate(x)
	case len(rest) == 2 && rest[0] == "pulls" && s.pull(x.number(4)) != nil:
		s.githubOne(x)
	case x.is("POST", "repos", "*", "*", "issues", "*", "labels") && s.pull(x.number(4)) != nil:
		s.githubAddLabels(x)
	case s.tracked(x), s.githubReviews(x), s.githubComments(x):
	default:
		x.githubSays(http.StatusNotFound, "Not Found")
	}
}

// githubAddLabels adds labels to a pull request.
func (s *StandIn) githubAddLabels(x *exchange) {
	p := s.pull(x.number(4))
	var in struct{ Labels []string }
	if !x.decode(&in) {
		return
	}
	p.label(in.Labels)
	out := []map[string]any{}
	for _, l := range p.Labels {
		out = append(out, githubLabel(l))
	}
	x.say(http.StatusOK, out)
}

// githubOne shows a pull request, and changes it first if that is asked for.
func (s *StandIn) githubOne(x *exchange) {
	p := s.pull(x.number(4))
	if strings.HasSuffix(x.r.Header.Get("Accept"), ".diff") {
		s.diff(x, p)
		return
	}
	if x.r.Method == http.MethodPatch {
		var in struct{ Title, Body *string }
		if !x.decode(&in) {
			return
		}
		if in.Title != nil {
			p.Title = *in.Title
		}
		if in.Body != nil {
			p.Body = *in.Body
		}
	}
	x.say(http.StatusOK, s.githubPull(p, true))
}

// githubCreate opens a pull request.
func (s *StandIn) githubCreate(x *exchange) {
	var in struct {
		Title, Head, Base, Body string
		Draft                   bool
	}
	if !x.decode(&in) {
		return
	}
	invalid := func(field string) {
		x.githubSays(http.StatusUnprocessableEntity, "Validation Failed",
			map[string]any{"resource": "PullRequest", "field": field, "code": "invalid"})
	}
	switch {
	case s.sha(in.Head) == "":
		invalid("head")
	case s.sha(in.Base) == "":
		invalid("base")
	case s.open(in.Head, in.Base) != nil:
		x.githubSays(http.StatusUnprocessableEntity, "Validation Failed",
			map[string]any{"resource": "PullRequest", "code": "custom",
				"message": "A pull request already exists for " + s.Owner + ":" + in.Head + "."})
	case s.sha(in.Head) == s.sha(in.Base):
		x.githubSays(http.StatusUnprocessableEntity, "Validation Failed",
			map[string]any{"resource": "PullRequest", "code": "custom",
				"message": "No commits between " + in.Base + " and " + in.Head})
	case in.Draft && s.NoDrafts:
		x.githubSays(http.StatusUnprocessableEntity, "Draft pull requests are not supported in this repository.")
	default:
		p := s.add(&StandInPull{Title: in.Title, Body: in.Body, Head: in.Head, Base: in.Base, Draft: in.Draft})
		x.say(http.StatusCreated, s.githubPull(p, true))
	}
}

// githubList lists pull requests, newest first.
func (s *StandIn) githubList(x *exchange) {
	query := x.r.URL.Query()
	owner, head, filtered := strings.Cut(query.Get("head"), ":")
	list := []map[string]any{}
	for _, p := range slices.Backward(s.pulls) {
		state := query.Get("state")
		if filtered && (owner != s.Owner || p.Head != head) || state != "all" && cmp.Or(state, "open") != githubState(p) {
			continue
		}
		list = append(list, s.githubPull(p, false))
	}
	x.say(http.StatusOK, list)
}

func (x *exchange) githubSays(status int, text string, details ...map[string]any) {
	m := map[string]any{"message": text, "documentation_url": "https://docs.github.com/rest",
		"status": strconv.Itoa(status)}
	if len(details) > 0 {
		m["errors"] = details
	}
	x.say(status, m)
}

func (p *StandInPull) label(labels []string) {
	for _, l := range labels {
		if !slices.Contains(p.Labels, l) {
			p.Labels = append(p.Labels, l)
		}
	}
}

func (s *StandIn) githubApp(x *exchange, jwt string) {
	switch {
	case s.App == nil:
		x.githubSays(http.StatusNotFound, "Not Found")
	case s.App.Verify(jwt) != nil:
		x.githubSays(http.StatusUnauthorized, "A JSON web token could not be decoded")
	case len(x.parts) == 1:
		x.say(http.StatusOK, s.githubItself())
	case x.r.Method == http.MethodGet:
		x.say(http.StatusOK, map[string]any{"id": s.App.Installation, "app_id": s.App.ID, "target_type": "Organization"})
	case x.parts[2] != fmt.Sprint(s.App.Installation):
		x.githubSays(http.StatusNotFound, "Not Found")
	default:
		s.App.Made++
		token := fmt.Sprintf("ghs_StandInInstallationToken%d", s.App.Made)
		s.Tokens = append(s.Tokens, token)
		x.say(http.StatusCreated,
			map[string]any{"token": token, "expires_at": s.App.Now().Add(s.App.Lifetime).UTC().Format(time.RFC3339),
				"permissions": map[string]any{"contents": "write", "pull_requests": "write"}, "repository_selection": "selected"})
	}
}

func githubState(p *StandInPull) string {
	if p.State == api.PullOpen {
		return "open"
	}
	return "closed"
}

func githubLabel(name string) map[string]any {
	return map[string]any{"id": 1, "node_id": "L_1", "url": "https://api.example.com/labels/1", "name": name,
		"description": "", "color": "ededed", "default": false}
}

func githubUser(login string) map[string]any {
	kind := "User"
	if strings.HasSuffix(login, "[bot]") {
		kind = "Bot"
	}
	u := map[string]any{"login": login, "id": accountID(login), "node_id": "U_1", "gravatar_id": "", "type": kind,
		"site_admin": false}
	for _, f := range []string{"avatar_url", "url", "html_url", "followers_url", "following_url", "gists_url",
		"starred_url", "subscriptions_url", "organizations_url", "repos_url", "events_url", "received_events_url"} {
		u[f] = "https://api.example.com/users/" + url.PathEscape(login)
	}
	return u
}

func (s *StandIn) githubRepository(rights int) map[string]any {
	at := "2026-01-01T00:00:00Z"
	r := map[string]any{
		"id": 1, "node_id": "R_1", "name": s.Name, "full_name": s.Owner + "/" + s.Name, "private": false,
		"owner": githubUser(s.Owner), "fork": false,
		"description": nil, "homepage": nil, "language": nil, "license": nil, "mirror_url": nil, "default_branch": "main",
		"archived": s.Archived, "disabled": false,
		"size": 1, "forks": 0, "forks_count": 0, "open_issues": 0, "open_issues_count": 0, "watchers": 0, "watchers_count": 0,
		"stargazers_count":  0,
		"subscribers_count": 0, "network_count": 0, "topics": []string{}, "visibility": "public",
		"has_issues": true, "has_projects": true, "has_wiki": true, "has_pages": false, "has_downloads": true,
		"has_discussions":   false,
		"has_pull_requests": true, "created_at": at, "updated_at": at, "pushed_at": at,
		"permissions": map[string]any{"admin": false, "maintain": false, "push": rights == 2, "triage": false, "pull": true},
	}
	for _, f := range strings.Fields(
		"html_url url archive_url assignees_url blobs_url branches_url collaborators_url comments_url commits_url compare_url contents_url contributors_url deployments_url downloads_url events_url forks_url git_commits_url git_refs_url git_tags_url hooks_url issue_comment_url issue_events_url issues_url keys_url labels_url languages_url merges_url milestones_url notifications_url pulls_url releases_url stargazers_url statuses_url subscribers_url subscription_url tags_url teams_url trees_url git_url ssh_url clone_url svn_url") {
		r[f] = s.URL + "/" + s.Owner + "/" + s.Name
	}
	return r
}

// githubPull is a pull request with all that the published description requires of one; the long form has more.
func (s *StandIn) githubPull(p *StandInPull, long bool) map[string]any {
	link := func(format string, args ...any) string {
		return s.URL + "/" + s.Owner + "/" + s.Name + fmt.Sprintf(format, args...)
	}
	created := p.Created.Format(time.RFC3339)
	ref := func(branch, sha string) map[string]any {
		return map[string]any{"label": s.Owner + ":" + branch, "ref": branch, "sha": cmp.Or(sha, strings.Repeat("0", 40)),
			"repo": s.githubRepository(2), "user": githubUser(s.Owner)}
	}
	labels := []map[string]any{}
	for _, l := range p.Labels {
		labels = append(labels, githubLabel(l))
	}
	asked, teams := []map[string]any{}, []map[string]any{}
	for _, w := range p.Reviewers {
		if _, team, ok := strings.Cut(w, "/"); ok {
			teams = append(teams, githubTeam(team))
		} else if !s.reviewed(p, w) {
			asked = append(asked, githubUser(w))
		}
	}
	links := map[string]any{}
	for _, name := range []string{"comments", "commits", "statuses", "html", "issue", "review_comments", "review_comment",
		"self"} {
		links[name] = map[string]any{"href": link("/pulls/%d", p.Number)}
	}
	out := map[string]any{
		"id": p.Number, "node_id": fmt.Sprintf("PR_%d", p.Number), "number": p.Number, "state": githubState(p),
		"locked": false, "title": p.Title, "body": p.Body,
		"user": githubUser("docent-bot"), "labels": labels, "milestone": nil, "created_at": created, "updated_at": created,
		"closed_at": nil, "merged_at": nil,
		"merge_commit_sha": nil, "assignee": nil, "assignees": []any{}, "requested_reviewers": asked,
		"requested_teams": teams,
		"head":            ref(p.Head, p.commit(s)), "base": ref(p.Base, s.sha(p.Base)), "_links": links,
		"author_association": "CONTRIBUTOR", "auto_merge": nil, "draft": p.Draft,
		"html_url": link("/pull/%d", p.Number),
	}
	for _, f := range []string{"url", "diff_url", "patch_url", "issue_url", "commits_url", "review_comments_url",
		"review_comment_url", "comments_url", "statuses_url"} {
		out[f] = link("/pulls/%d", p.Number)
	}
	if p.State != api.PullOpen {
		out["closed_at"] = created
	}
	if p.State == api.PullMerged {
		out["merged_at"] = created
	}
	if long {
		maps.Copy(out, map[string]any{"merged": p.State == api.PullMerged, "mergeable": true, "mergeable_state": "clean",
			"merged_by": nil, "comments": 0,
			"review_comments": 0, "maintainer_can_modify": false, "commits": 1, "additions": 1, "deletions": 1,
			"changed_files": 1})
	}
	return out
}

func (s *StandIn) gitlab(x *exchange) {
	rights := s.rights(x.r.Header.Get("Private-Token"))
	switch {
	case rights == 0:
		x.say(http.StatusUnauthorized, map[string]any{"message": "401 Unauthorized"})
		return
	case x.is("GET", "users"):
		list := []map[string]any{}
		if name := x.r.URL.Query().Get("username"); s.People[name] != "" {
			list = append(list, gitlabUser(name))
		}
		x.say(http.StatusOK, list)
		return
	case x.is("GET", "personal_access_tokens", "self") && len(s.Scopes) > 0:
		x.say(http.StatusOK, map[string]any{"id": 1, "name": "docent", "scopes": s.Scopes, "active": true, "revoked": false})
		return
	case len(x.parts) < 2 || x.parts[0] != "projects" || x.parts[1] != s.Owner+"/"+s.Name:
		x.say(http.StatusNotFound, map[string]any{"message": "404 Project Not Found"})
		return
	case x.r.Method != http.MethodGet && (rights < 2 || s.Archived):
		x.say(http.StatusForbidden, map[string]any{"message": "403 Forbidden"})
		return
	}
	switch {
	case x.is("GET", "projects", "*"):
		level := 20
		if rights == 2 {
			level = 30
		}
		x.say(http.StatusOK, map[string]any{"id": 7, "path_with_namespace": s.Owner + "/" + s.Name, "default_branch": "main",
			"archived": s.Archived,
			"web_url":  s.URL + "/" + s.Owner + "/" + s.Name,
			"permissions": map[string]any{"project_access": map[string]any{"access_level": level, "notification_level": 3},
				"group_access": nil}})
	case x.is("GET", "projects", "*", "merge_requests"):
		s.gitlabList(x)
	case x.is("POST", "projects", "*", "merge_requests"):
		s.gitlabCreate(x)
	case len(x.parts) == 4 && x.parts[2] == "merge_requests" && s.pull(x.number(3)) != nil:
		s.gitlabOne(x)
	case x.is("GET", "projects", "*", "repository", "commits", "*", "merge_requests"):
		list := []map[string]any{}
		if account := s.wrote(x.parts[4]); account != "" {
			list = append(list, map[string]any{"id": 1, "iid": 1, "author": gitlabUser(account)})
		}
		x.say(http.StatusOK, list)
	case s.tracked(x), s.gitlabComments(x):
	default:
		x.say(http.StatusNotFound, map[string]any{"error": "404 Not Found"})
	}
}

// gitlabOne shows a merge request, and changes it first if that is asked for.
func (s *StandIn) gitlabOne(x *exchange) {
	p := s.pull(x.number(3))
	if x.r.Method == http.MethodPut {
		var in struct {
			Description *string
			Add         string   `json:"add_labels"`
			Reviewers   *[]int64 `json:"reviewer_ids"`
		}
		if !x.decode(&in) {
			return
		}
		if in.Description != nil {
			p.Body = *in.Description
		}
		if in.Add != "" {
			p.label(strings.Split(in.Add, ","))
		}
		if in.Reviewers != nil {
			before := p.Reviewers
			p.Reviewers = nil
			for _, id := range *in.Reviewers {
				p.review(s.accountOf(strconv.FormatInt(id, 10)), before)
			}
		}
	}
	x.say(http.StatusOK, s.gitlabPull(p))
}

// gitlabCreate opens a merge request.
func (s *StandIn) gitlabCreate(x *exchange) {
	var in struct {
		Title, Description, Labels string
		Source                     string `json:"source_branch"`
		Target                     string `json:"target_branch"`
	}
	if !x.decode(&in) {
		return
	}
	if other := s.open(in.Source, in.Target); other != nil {
		x.say(http.StatusConflict,
			map[string]any{"message": []string{fmt.Sprintf(
				"Another open merge request already exists for this source branch: !%d", other.Number)}})
		return
	}
	if s.sha(in.Source) == "" {
		x.say(http.StatusBadRequest, map[string]any{"message": map[string]any{"source_branch": []string{"does not exist"}}})
		return
	}
	p := s.add(&StandInPull{Title: in.Title, Body: in.Description, Head: in.Source, Base: in.Target,
		Draft: strings.HasPrefix(in.Title, "Draft: ")})
	if in.Labels != "" {
		p.label(strings.Split(in.Labels, ","))
	}
	x.say(http.StatusCreated, s.gitlabPull(p))
}

// gitlabList lists merge requests, newest first.
func (s *StandIn) gitlabList(x *exchange) {
	query := x.r.URL.Query()
	list := []map[string]any{}
	for _, p := range slices.Backward(s.pulls) {
		if branch := query.Get("source_branch"); branch != "" && p.Head != branch || query.Get("state") != "all" &&
			query.Get("state") != gitlabState(p) {
			continue
		}
		list = append(list, s.gitlabPull(p))
	}
	x.say(http.StatusOK, list)
}

func gitlabState(p *StandInPull) string {
	return map[api.PullState]string{api.PullOpen: "opened", api.PullMerged: "merged", api.PullClosed: "closed"}[p.State]
}

func (s *StandIn) gitlabPull(p *StandInPull) map[string]any {
	reviewers := []map[string]any{}
	for _, w := range p.Reviewers {
		reviewers = append(reviewers, gitlabUser(w))
	}
	return map[string]any{"id": 1000 + p.Number, "iid": p.Number, "project_id": 7, "source_project_id": 7,
		"target_project_id": 7, "title": p.Title, "description": p.Body,
		"state": gitlabState(p), "source_branch": p.Head, "target_branch": p.Base, "sha": p.commit(s), "draft": p.Draft,
		"labels": append([]string{}, p.Labels...), "reviewers": reviewers,
		"web_url":    fmt.Sprintf("%s/%s/%s/-/merge_requests/%d", s.URL, s.Owner, s.Name, p.Number),
		"created_at": p.Created.Format(time.RFC3339)}
}

func (s *StandIn) gitea(x *exchange) {
	_, token, _ := strings.Cut(x.r.Header.Get("Authorization"), " ")
	rights := s.rights(token)
	switch {
	case rights == 0:
		s.giteaSays(x, http.StatusUnauthorized, "invalid username, password or token")
		return
	case len(x.parts) < 3 || x.parts[0] != "repos" || x.parts[1] != s.Owner || x.parts[2] != s.Name:
		s.giteaSays(x, http.StatusNotFound, "The target couldn't be found.")
		return
	case x.r.Method != http.MethodGet && rights < 2:
		s.giteaSays(x, http.StatusForbidden, "token does not have at least one of required scope(s): [write:repository]")
		return
	case x.r.Method != http.MethodGet && s.Archived:
		s.giteaSays(x, http.StatusLocked, "Repo is archived.")
		return
	}
	rest := x.parts[3:]
	switch {
	case x.is("GET", "repos", "*", "*"):
		x.say(http.StatusOK, map[string]any{"id": 1, "name": s.Name, "full_name": s.Owner + "/" + s.Name,
			"archived": s.Archived, "default_branch": "main", "empty": false, "html_url": s.link(""),
			"created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z",
			"permissions": map[string]any{"admin": false, "push": rights == 2, "pull": true}})
	case x.is("GET", "repos", "*", "*", "pulls"):
		s.giteaList(x)
	case x.is("POST", "repos", "*", "*", "pulls"):
		s.giteaCreate(x)
	case len(rest) == 2 && rest[0] == "pulls":
		s.giteaOne(x)
	case s.tracked(x), s.giteaReviews(x), s.giteaComments(x):
	case len(rest) > 2 && rest[0] == "pulls" && x.r.Method == http.MethodGet: // {base}/{head}, whose slashes are its own
		s.giteaBetween(x)
	case len(rest) == 3 && rest[0] == "issues" && rest[2] == "labels" && x.r.Method == http.MethodPost &&
		s.pull(x.number(4)) != nil:
		var in struct{ Labels []string }
		if !x.decode(&in) {
			return
		}
		p := s.pull(x.number(4))
		p.label(in.Labels)
		x.say(http.StatusOK, s.giteaPull(p)["labels"])
	default:
		s.giteaSays(x, http.StatusNotFound, "The target couldn't be found.")
	}
}

// giteaBetween shows the pull request from one branch into another.
func (s *StandIn) giteaBetween(x *exchange) {
	raw := strings.SplitN(strings.Trim(strings.TrimPrefix(x.r.URL.EscapedPath(), "/api/v1/"), "/"), "/", 6)
	base, _ := url.PathUnescape(raw[4])
	head, _ := url.PathUnescape(raw[5])
	for _, p := range s.pulls { // the oldest: the server asks for any
		if p.Head == head && p.Base == base {
			x.say(http.StatusOK, s.giteaPull(p))
			return
		}
	}
	s.giteaSays(x, http.StatusNotFound, "The target couldn't be found.")
}

// giteaOne shows a pull request, and changes it first if that is asked for.
func (s *StandIn) giteaOne(x *exchange) {
	number, diff := strings.CutSuffix(x.parts[4], ".diff")
	n, _ := strconv.Atoi(number)
	p := s.pull(n)
	if p == nil {
		s.giteaSays(x, http.StatusNotFound, "The target couldn't be found.")
		return
	}
	if diff {
		s.diff(x, p)
		return
	}
	if x.r.Method == http.MethodPatch {
		var in struct{ Title, Body *string }
		if !x.decode(&in) {
			return
		}
		if in.Body != nil {
			p.Body = *in.Body
		}
		x.say(http.StatusCreated, s.giteaPull(p))
		return
	}
	x.say(http.StatusOK, s.giteaPull(p))
}

// giteaCreate opens a pull request.
func (s *StandIn) giteaCreate(x *exchange) {
	var in struct {
		Title, Head, Base, Body string
		Labels                  []int64 // names are refused here
	}
	if !x.decode(&in) {
		return
	}
	switch other := s.open(in.Head, in.Base); {
	case s.sha(in.Head) == "" || s.sha(in.Base) == "":
		s.giteaSays(x, http.StatusNotFound, "The target couldn't be found.")
	case in.Head == in.Base || s.sha(in.Head) == s.sha(in.Base):
		s.giteaSays(x, http.StatusUnprocessableEntity,
			"Invalid PullRequest: There are no changes between the head and the base")
	case other != nil:
		s.giteaSays(x, http.StatusConflict,
			fmt.Sprintf("pull request already exists for these targets [id: %d, issue_id: %d, head_repo_id: 1, base_repo_id: 1, head_branch: %s, base_branch: %s]", other.Number, other.Number, in.Head, in.Base))
	default:
		p := s.add(&StandInPull{Title: in.Title, Body: in.Body, Head: in.Head, Base: in.Base,
			Draft: strings.HasPrefix(in.Title, "WIP:")})
		x.say(http.StatusCreated, s.giteaPull(p))
	}
}

// giteaList lists a page of pull requests, newest first.
func (s *StandIn) giteaList(x *exchange) {
	query := x.r.URL.Query()
	page, _ := strconv.Atoi(cmp.Or(query.Get("page"), "1"))
	limit, _ := strconv.Atoi(cmp.Or(query.Get("limit"), "30"))
	list := []map[string]any{}
	for _, p := range slices.Backward(s.pulls) {
		if state := cmp.Or(query.Get("state"), "open"); state == "all" || state == githubState(p) {
			list = append(list, s.giteaPull(p))
		}
	}
	from := min((page-1)*limit, len(list))
	x.say(http.StatusOK, list[from:min(from+limit, len(list))])
}

func (s *StandIn) giteaSays(x *exchange, status int, text string) {
	x.say(status, map[string]any{"message": text, "url": s.URL + "/api/swagger"})
}

func (s *StandIn) giteaPull(p *StandInPull) map[string]any {
	head := p.Head
	if p.State != api.PullOpen && s.sha(p.Head) == "" {
		head = fmt.Sprintf("refs/pull/%d/head", p.Number)
	}
	ref := func(label, ref, sha string) map[string]any {
		return map[string]any{"label": label, "ref": ref, "sha": sha, "repo_id": 1}
	}
	labels := []map[string]any{}
	for _, l := range p.Labels {
		labels = append(labels, map[string]any{"id": 1, "name": l})
	}
	return map[string]any{"id": p.Number, "number": p.Number, "title": p.Title, "body": p.Body, "state": githubState(p),
		"merged": p.State == api.PullMerged, "draft": p.Draft,
		"labels": labels, "html_url": fmt.Sprintf("%s/%s/%s/pulls/%d", s.URL, s.Owner, s.Name, p.Number),
		"user": s.giteaUser(s.writer()), "created_at": p.Created.Format(time.RFC3339),
		"updated_at": p.Created.Format(time.RFC3339),
		"head":       ref(p.Head, head, p.commit(s)), "base": ref(p.Base, p.Base, s.sha(p.Base))}
}
