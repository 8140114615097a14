package forgetest

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A StandInComment is a comment on a pull request of a StandIn.
type StandInComment struct {
	ID      int64
	Pull    int
	Author  string
	Body    string
	Path    string // empty in the conversation
	Line    int
	Old     bool
	Hunk    string // of the changes, up to the line
	Review  int64  // that it belongs to
	Root    int64  // of the thread that it stands in; zero if it begins one
	Created time.Time
	Updated time.Time
	System  bool // the host wrote it
}

// A StandInReview is a review on a StandIn: a text, and comments that appear when it is handed in.
type StandInReview struct {
	ID        int64
	Pull      int
	Author    string
	Body      string
	Pending   bool
	Drafted   time.Time
	Submitted time.Time
}

func (s *StandIn) now() time.Time {
	now := time.Now
	if s.Clock != nil {
		now = s.Clock
	}
	return now().UTC().Truncate(time.Second) // as hosts show it
}

func (s *StandIn) nextID() int64 {
	s.lastID++
	return 4_000_000_000 + s.lastID // as large as real ones
}

func (s *StandIn) comment(c StandInComment) *StandInComment {
	c.ID = s.nextID()
	if c.Created.IsZero() {
		c.Created = s.now()
	}
	c.Updated = c.Created
	s.said = append(s.said, &c)
	return &c
}

// Say writes a comment into a pull request's conversation.
func (s *StandIn) Say(number int, author, body string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.comment(StandInComment{Pull: number, Author: author, Body: body}).ID
}

// SaySystem writes what a host itself notes in a conversation.
func (s *StandIn) SaySystem(number int, body string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.comment(StandInComment{Pull: number, Author: "ann", Body: body, System: true}).ID
}

// SayOn writes a single comment on a line, or in the thread of another one if Root says which.
func (s *StandIn) SayOn(c StandInComment) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if root := s.commented(c.Root); root != nil {
		c.Pull, c.Path, c.Line, c.Old, c.Hunk, c.Review = root.Pull, root.Path, root.Line, root.Old, root.Hunk, root.Review
	} else {
		r := &StandInReview{ID: s.nextID(), Pull: c.Pull, Author: c.Author, Drafted: s.now(), Submitted: s.now()}
		s.reviews = append(s.reviews, r)
		c.Review = r.ID
	}
	return s.comment(c).ID
}

// Draft begins a review that nobody sees yet, with a text and comments on lines.
func (s *StandIn) Draft(number int, author, body string, comments ...StandInComment) (review int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &StandInReview{ID: s.nextID(), Pull: number, Author: author, Body: body, Pending: true, Drafted: s.now()}
	s.reviews = append(s.reviews, r)
	for _, c := range comments {
		c.Pull, c.Author, c.Review = number, author, r.ID
		s.comment(c)
	}
	return r.ID
}

// Submit hands a review in.
func (s *StandIn) Submit(review int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.review(review)
	r.Pending, r.Submitted = false, s.now()
}

// Unsay deletes a comment.
func (s *StandIn) Unsay(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = slices.DeleteFunc(s.said, func(c *StandInComment) bool { return c.ID == id })
}

// Edit gives a comment another text.
func (s *StandIn) Edit(id int64, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.commented(id)
	c.Body, c.Updated = body, s.now()
}

// Said are the comments on a pull request, oldest first.
func (s *StandIn) Said(number int) []StandInComment {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []StandInComment
	for _, c := range s.said {
		if c.Pull == number {
			out = append(out, *c)
		}
	}
	return out
}

// Replies are what a StandIn's tokens wrote on a pull request.
func (s *StandIn) Replies(number int) []StandInComment {
	return slices.DeleteFunc(s.Said(number), func(c StandInComment) bool { return c.Author != s.writer() })
}

// Ends checks that a comment ends with Docent's mark for a key.
func (c StandInComment) Ends(t testing.TB, key string) {
	t.Helper()
	if !strings.HasSuffix(c.Body, "<!-- docent:"+key+" -->") {
		t.Errorf("the comment %q does not end with the mark of %s", c.Body, key)
	}
}

func (s *StandIn) commented(id int64) *StandInComment {
	for _, c := range s.said {
		if c.ID == id && id != 0 {
			return c
		}
	}
	return nil
}

func (s *StandIn) review(id int64) *StandInReview {
	for _, r := range s.reviews {
		if r.ID == id {
			return r
		}
	}
	return nil
}

// seen reports whether a comment has appeared.
func (s *StandIn) seen(c *StandInComment) bool {
	r := s.review(c.Review)
	return r == nil || !r.Pending
}

func (s *StandIn) writer() string {
	if s.App != nil {
		return s.App.Slug + "[bot]"
	}
	return cmp.Or(s.Writer, "docent-bot")
}

// may is what the host says that an account may do; nothing if it does not know it.
func (s *StandIn) may(account string) string {
	if right, ok := s.People[account]; ok {
		return right
	}
	if account == cmp.Or(s.Writer, "docent-bot") {
		return "write"
	}
	return ""
}

// accountID is the number of an account.
func accountID(login string) int64 {
	h := fnv.New32a()
	h.Write([]byte(login))
	return int64(h.Sum32()>>1) + 1
}

func (s *StandIn) accountOf(id string) string {
	for login := range s.People {
		if strconv.FormatInt(accountID(login), 10) == id {
			return login
		}
	}
	if w := cmp.Or(s.Writer, "docent-bot"); strconv.FormatInt(accountID(w), 10) == id {
		return w
	}
	return ""
}

// paged is the page of a list that is asked for, and whether another one follows.
func paged[T any](s *StandIn, x *exchange, size string, usual int, list []T) (page []T, next int) {
	query := x.r.URL.Query()
	n, _ := strconv.Atoi(cmp.Or(query.Get("page"), "1"))
	limit, _ := strconv.Atoi(query.Get(size))
	limit = cmp.Or(min(limit, 100), usual)
	if s.SamePage {
		return list[:min(limit, len(list))], n + 1
	}
	from := min(max(n-1, 0)*limit, len(list))
	to := min(from+limit, len(list))
	if to < len(list) {
		next = n + 1
	}
	return list[from:to], next
}

// since leaves out what was changed before a time that is asked for.
func since(x *exchange, list []*StandInComment) []*StandInComment {
	from, err := time.Parse(time.RFC3339, x.r.URL.Query().Get("since"))
	if err != nil {
		return list
	}
	return slices.DeleteFunc(list, func(c *StandInComment) bool { return c.Updated.Before(from) })
}

// on are the comments on a pull request that have appeared: those of the conversation, or those on lines.
func (s *StandIn) on(number int, lines bool) []*StandInComment {
	var out []*StandInComment
	for _, c := range s.said {
		if c.Pull == number && (c.Path != "") == lines && s.seen(c) {
			out = append(out, c)
		}
	}
	return out
}

// githubPage answers with a page of a list, and with the address of the next one.
func githubPage[T any](s *StandIn, x *exchange, list []T, show func(T) map[string]any) {
	page, next := paged(s, x, "per_page", 30, list)
	if next != 0 {
		query := x.r.URL.Query()
		query.Set("page", strconv.Itoa(next))
		x.w.Header().Set("Link", fmt.Sprintf(`<%s%s?%s>; rel="next"`, s.URL, x.r.URL.EscapedPath(), query.Encode()))
	}
	out := []map[string]any{}
	for _, c := range page {
		out = append(out, show(c))
	}
	x.say(http.StatusOK, out)
}

// githubComments answers what is asked of comments; false if it is something else.
func (s *StandIn) githubComments(x *exchange) bool {
	if x.is("GET", "repos", "*", "*", "collaborators", "*", "permission") {
		s.githubPermission(x)
		return true
	}
	if s.edited(x, 65536, s.githubComment) {
		return true
	}
	if len(x.parts) < 6 || s.pull(x.number(4)) == nil {
		return false
	}
	number := x.number(4)
	switch {
	case x.is("GET", "repos", "*", "*", "issues", "*", "comments"):
		githubPage(s, x, since(x, s.on(number, false)), s.githubComment)
	case x.is("GET", "repos", "*", "*", "pulls", "*", "comments"):
		githubPage(s, x, since(x, s.on(number, true)), s.githubLine)
	case x.is("GET", "repos", "*", "*", "pulls", "*", "reviews"):
		var list []*StandInReview
		for _, r := range s.reviews {
			if r.Pull == number && (!r.Pending || r.Author == s.writer()) {
				list = append(list, r)
			}
		}
		githubPage(s, x, list, s.githubReview)
	case x.is("POST", "repos", "*", "*", "issues", "*", "comments"):
		if body, ok := s.body(x, 65536); ok {
			x.say(http.StatusCreated, s.githubComment(s.comment(StandInComment{Pull: number, Author: s.writer(), Body: body})))
		}
	case x.is("POST", "repos", "*", "*", "pulls", "*", "comments", "*", "replies"):
		root := s.commented(int64(x.number(6)))
		if root == nil || root.Path == "" || root.Root != 0 {
			x.githubSays(http.StatusNotFound, "Not Found")
			return true
		}
		if body, ok := s.body(x, 65536); ok {
			c := *root
			c.Root, c.Author, c.Body, c.Created = root.ID, s.writer(), body, time.Time{}
			x.say(http.StatusCreated, s.githubLine(s.comment(c)))
		}
	default:
		return false
	}
	return true
}

// body is the text of a new comment.
func (s *StandIn) body(x *exchange, most int) (string, bool) {
	var in struct{ Body string }
	if !x.decode(&in) {
		return "", false
	}
	if in.Body == "" || len([]rune(in.Body)) > most {
		x.say(http.StatusUnprocessableEntity, map[string]any{"message": "Validation Failed",
			"errors": []map[string]any{{"resource": "IssueComment", "field": "data", "code": "unprocessable",
				"message": "Body is too long (maximum is 65536 characters)"}}})
		return "", false
	}
	return in.Body, true
}

func (s *StandIn) githubPermission(x *exchange) {
	account := x.parts[4]
	right := s.may(account)
	switch right {
	case "":
		x.githubSays(http.StatusNotFound, account+" is not a user")
		return
	case "blocked", "bot":
		right = "none"
	}
	u := githubUser(account)
	u["role_name"] = right
	x.say(http.StatusOK, map[string]any{"permission": right, "role_name": right, "user": u})
}

func (s *StandIn) githubItself() map[string]any {
	at := "2026-01-01T00:00:00Z"
	return map[string]any{"id": s.App.ID, "slug": s.App.Slug, "node_id": "A_1", "owner": githubUser(s.Owner),
		"name": s.App.Slug, "description": "", "external_url": "https://example.com",
		"html_url": "https://example.com/apps/" + s.App.Slug, "created_at": at, "updated_at": at,
		"permissions": map[string]any{"contents": "write", "pull_requests": "write", "metadata": "read"},
		"events":      []string{}}
}

func (s *StandIn) link(format string, args ...any) string {
	return s.URL + "/" + s.Owner + "/" + s.Name + fmt.Sprintf(format, args...)
}

// author is how GitHub shows who wrote a comment: a bot's account says what it is.
func (s *StandIn) author(login string) map[string]any {
	u := githubUser(login)
	if s.People[login] == "bot" {
		u["type"] = "Bot"
	}
	return u
}

func (s *StandIn) githubComment(c *StandInComment) map[string]any {
	return map[string]any{"id": c.ID, "node_id": fmt.Sprintf("IC_%d", c.ID), "user": s.author(c.Author), "body": c.Body,
		"url": s.link("/issues/comments/%d", c.ID), "issue_url": s.link("/issues/%d", c.Pull),
		"html_url":           s.link("/pull/%d#issuecomment-%d", c.Pull, c.ID),
		"created_at":         c.Created.Format(time.RFC3339),
		"updated_at":         c.Updated.Format(time.RFC3339),
		"author_association": "NONE", "performed_via_github_app": nil}
}

func (s *StandIn) githubReview(r *StandInReview) map[string]any {
	href := s.link("/pull/%d#pullrequestreview-%d", r.Pull, r.ID)
	out := map[string]any{"id": r.ID, "node_id": fmt.Sprintf("PRR_%d", r.ID), "user": s.author(r.Author), "body": r.Body,
		"state": "COMMENTED", "html_url": href, "pull_request_url": s.link("/pulls/%d", r.Pull),
		"commit_id": s.headOf(r.Pull),
		"_links": map[string]any{"html": map[string]any{"href": href},
			"pull_request": map[string]any{"href": s.link("/pulls/%d", r.Pull)}},
		"author_association": "NONE"}
	if r.Pending {
		out["state"] = "PENDING"
	} else {
		out["submitted_at"] = r.Submitted.Format(time.RFC3339)
	}
	return out
}

func (s *StandIn) headOf(number int) string {
	return cmp.Or(s.pull(number).commit(s), strings.Repeat("0", 40))
}

func (s *StandIn) githubLine(c *StandInComment) map[string]any {
	side := "RIGHT"
	if c.Old {
		side = "LEFT"
	}
	links := map[string]any{}
	for _, name := range []string{"self", "html", "pull_request"} {
		links[name] = map[string]any{"href": s.link("/pulls/comments/%d", c.ID)}
	}
	out := map[string]any{"id": c.ID, "node_id": fmt.Sprintf("PRRC_%d", c.ID), "user": s.author(c.Author), "body": c.Body,
		"pull_request_review_id": c.Review, "path": c.Path, "diff_hunk": c.Hunk, "commit_id": s.headOf(c.Pull),
		"original_commit_id": s.headOf(c.Pull), "created_at": c.Created.Format(time.RFC3339),
		"updated_at": c.Updated.Format(time.RFC3339), "author_association": "NONE", "_links": links,
		"url": s.link("/pulls/comments/%d", c.ID), "pull_request_url": s.link("/pulls/%d", c.Pull),
		"html_url": s.link("/pull/%d#discussion_r%d", c.Pull, c.ID), "subject_type": "line", "side": side,
		"line": c.Line, "original_line": c.Line, "start_line": nil, "original_start_line": nil, "start_side": nil}
	if c.Line == 0 {
		out["subject_type"] = "file"
		delete(out, "line")
		delete(out, "original_line")
	}
	if c.Root != 0 {
		out["in_reply_to_id"] = c.Root
	}
	return out
}

// gitlabComments answers what is asked of comments; false if it is something else.
func (s *StandIn) gitlabComments(x *exchange) bool {
	if x.is("GET", "projects", "*", "members", "all", "*") {
		s.gitlabMember(x)
		return true
	}
	if len(x.parts) < 5 || x.parts[2] != "merge_requests" || s.pull(x.number(3)) == nil {
		return false
	}
	number := x.number(3)
	switch {
	case s.edited(x, 1_000_000, s.gitlabNote):
	case x.is("GET", "projects", "*", "merge_requests", "*", "raw_diffs"):
		s.diff(x, s.pull(number))
	case x.is("GET", "projects", "*", "merge_requests", "*", "discussions"):
		var roots []*StandInComment
		for _, c := range s.said {
			if c.Pull == number && c.Root == 0 && s.seen(c) {
				roots = append(roots, c)
			}
		}
		page, next := paged(s, x, "per_page", 20, roots)
		if next != 0 {
			x.w.Header().Set("X-Next-Page", strconv.Itoa(next))
		}
		out := []map[string]any{}
		for _, c := range page {
			out = append(out, s.gitlabDiscussion(c))
		}
		x.say(http.StatusOK, out)
	case x.is("POST", "projects", "*", "merge_requests", "*", "notes"):
		if body, ok := s.body(x, 1_000_000); ok {
			x.say(http.StatusCreated, s.gitlabNote(s.comment(StandInComment{Pull: number, Author: s.writer(), Body: body})))
		}
	case x.is("POST", "projects", "*", "merge_requests", "*", "discussions", "*", "notes"):
		id, _ := strconv.ParseInt(x.parts[5], 16, 64)
		root := s.commented(id)
		if root == nil || root.Root != 0 || root.Pull != number {
			x.say(http.StatusNotFound, map[string]any{"message": "404 Discussion Not Found"})
			return true
		}
		if body, ok := s.body(x, 1_000_000); ok {
			c := *root
			c.Root, c.Author, c.Body, c.Created = root.ID, s.writer(), body, time.Time{}
			x.say(http.StatusCreated, s.gitlabNote(s.comment(c)))
		}
	default:
		return false
	}
	return true
}

func (s *StandIn) gitlabMember(x *exchange) {
	account := s.accountOf(x.parts[4])
	levels := map[string]int{"admin": 40, "write": 30, "read": 20, "bot": 30, "blocked": 30}
	level, state := levels[s.may(account)], "active"
	if level == 0 {
		x.say(http.StatusNotFound, map[string]any{"message": "404 Not found"})
		return
	}
	if s.may(account) == "blocked" {
		state = "blocked"
	}
	x.say(http.StatusOK, map[string]any{"id": accountID(account), "username": account, "name": account, "state": state,
		"access_level": level, "web_url": s.URL + "/" + account, "expires_at": nil})
}

func (s *StandIn) gitlabDiscussion(root *StandInComment) map[string]any {
	notes := []map[string]any{s.gitlabNote(root)}
	for _, c := range s.said {
		if c.Root == root.ID && s.seen(c) {
			notes = append(notes, s.gitlabNote(c))
		}
	}
	return map[string]any{"id": fmt.Sprintf("%040x", root.ID), "individual_note": root.Path == "" && len(notes) == 1,
		"notes": notes}
}

func (s *StandIn) gitlabNote(c *StandInComment) map[string]any {
	created := c.Created
	if r := s.review(c.Review); r != nil && r.Submitted.After(created) {
		created = r.Submitted // drafts become notes when they are handed in
	}
	username := c.Author
	if s.People[c.Author] == "bot" {
		username = "project_7_bot_" + fmt.Sprintf("%x", accountID(c.Author))
	}
	out := map[string]any{"id": c.ID, "type": nil, "body": c.Body, "system": c.System, "noteable_iid": c.Pull,
		"noteable_type": "MergeRequest", "project_id": 7, "created_at": created.Format(time.RFC3339),
		"updated_at": c.Updated.Format(time.RFC3339),
		"author": map[string]any{"id": accountID(c.Author), "username": username, "name": c.Author, "state": "active",
			"web_url": s.URL + "/" + c.Author}}
	if c.Path == "" {
		return out
	}
	position := map[string]any{"base_sha": s.sha("main"), "start_sha": s.sha("main"), "head_sha": s.headOf(c.Pull),
		"position_type": "text", "old_path": c.Path, "new_path": c.Path, "old_line": nil, "new_line": nil}
	switch {
	case c.Line == 0:
		position["position_type"] = "file"
	case c.Old:
		position["old_line"] = c.Line
	default:
		position["new_line"] = c.Line
	}
	out["type"], out["position"] = "DiffNote", position
	return out
}

// giteaComments answers what is asked of comments; false if it is something else.
func (s *StandIn) giteaComments(x *exchange) bool {
	if x.is("GET", "repos", "*", "*", "collaborators", "*", "permission") {
		s.giteaPermission(x)
		return true
	}
	if x.is("GET", "repos", "*", "*", "assignees") {
		out := []map[string]any{}
		for _, account := range append(slices.Collect(maps.Keys(s.People)), s.writer()) {
			if right := s.may(account); right == "write" || right == "admin" {
				out = append(out, s.giteaUser(account))
			}
		}
		x.say(http.StatusOK, out)
		return true
	}
	if x.is("GET", "repos", "*", "*", "issues", "*", "comments") && s.pull(x.number(4)) == nil {
		s.giteaSays(x, http.StatusInternalServerError, "") // so it is, with a line in its log
		return true
	}
	if s.edited(x, 1<<20, s.giteaComment) {
		return true
	}
	if len(x.parts) < 6 || s.pull(x.number(4)) == nil {
		return false
	}
	number := x.number(4)
	switch {
	case x.is("GET", "repos", "*", "*", "issues", "*", "comments"): // all at once
		out := []map[string]any{}
		for _, c := range since(x, s.on(number, false)) {
			if !c.System { // those are in the timeline alone
				out = append(out, s.giteaComment(c))
			}
		}
		x.say(http.StatusOK, out)
	case x.is("GET", "repos", "*", "*", "pulls", "*", "reviews"):
		out := append([]map[string]any{}, s.giteaAsked(number)...)
		for _, r := range s.reviews {
			if r.Pull == number && (!r.Pending || r.Author == s.writer()) {
				out = append(out, s.giteaReview(r))
			}
		}
		page, _ := paged(s, x, "limit", 30, out)
		x.say(http.StatusOK, page)
	case x.is("GET", "repos", "*", "*", "pulls", "*", "reviews", "*", "comments") && s.review(int64(x.number(6))) != nil:
		out := []map[string]any{}
		for _, c := range s.on(number, true) {
			if c.Review == int64(x.number(6)) {
				out = append(out, s.giteaLine(c))
			}
		}
		slices.Reverse(out) // they come in no order
		x.say(http.StatusOK, out)
	default:
		return s.giteaPost(x, number)
	}
	return true
}

// edited takes another text for a comment of a conversation, as the hosts do: PATCH at GitHub and Gitea, PUT at GitLab.
func (s *StandIn) edited(x *exchange, most int, show func(*StandInComment) map[string]any) bool {
	id := int64(0)
	switch {
	case x.is("PATCH", "repos", "*", "*", "issues", "comments", "*"):
		id = int64(x.number(5))
	case x.is("PUT", "projects", "*", "merge_requests", "*", "notes", "*"):
		id = int64(x.number(5))
	}
	c := s.commented(id)
	if c == nil {
		return false
	}
	if body, ok := s.body(x, most); ok {
		c.Body, c.Updated = body, s.now()
		x.say(http.StatusOK, show(c))
	}
	return true
}

// diff shows what a pull request changes, as git writes it.
func (s *StandIn) diff(x *exchange, p *StandInPull) {
	x.w.Header().Set("Content-Type", "text/plain")
	_, _ = io.WriteString(x.w, s.diffOf(p.Base, p.Head))
}

// giteaPost takes a new comment.
func (s *StandIn) giteaPost(x *exchange, number int) bool {
	switch {
	case x.is("POST", "repos", "*", "*", "issues", "*", "comments"):
		if body, ok := s.body(x, 1<<20); ok {
			x.say(http.StatusCreated, s.giteaComment(s.comment(StandInComment{Pull: number, Author: s.writer(), Body: body})))
		}
	case s.NoReplies && len(x.parts) > 7 && x.parts[7] == "replies":
		x.w.WriteHeader(http.StatusMethodNotAllowed)
	case x.is("POST", "repos", "*", "*", "pulls", "*", "comments", "*", "replies"):
		parent := s.commented(int64(x.number(6)))
		if parent == nil || parent.Pull != number || parent.Path == "" {
			s.giteaSays(x, http.StatusNotFound, "The target couldn't be found.")
			return true
		}
		if body, ok := s.body(x, 1<<20); ok {
			c := *parent
			c.Root, c.Author, c.Body, c.Created = cmp.Or(parent.Root, parent.ID), s.writer(), body, time.Time{}
			x.say(http.StatusCreated, s.giteaLine(s.comment(c)))
		}
	default:
		return false
	}
	return true
}

func (s *StandIn) giteaPermission(x *exchange) {
	account := x.parts[4]
	right := s.may(account)
	switch {
	case s.NoAdmin && account != s.writer():
		s.giteaSays(x, http.StatusForbidden,
			"Only admins can query all permissions, repo admins can query all repo permissions, collaborators can query only their own")
	case right == "":
		s.giteaSays(x, http.StatusNotFound, "user does not exist [uid: 0, name: "+account+"]")
	default:
		switch right {
		case "bot":
			right = "none"
		case "blocked": // an account that was closed keeps its permissions
			right = "write"
		}
		x.say(http.StatusOK, map[string]any{"permission": right, "role_name": right, "user": s.giteaUser(account)})
	}
}

func (s *StandIn) giteaUser(login string) map[string]any {
	id := accountID(login)
	if login == "gitea-actions" {
		id = -2
	}
	return map[string]any{"id": id, "login": login, "full_name": "", "email": login + "@noreply.example.org",
		"html_url": s.URL + "/" + login}
}

func (s *StandIn) giteaComment(c *StandInComment) map[string]any {
	return map[string]any{"id": c.ID, "user": s.giteaUser(c.Author), "body": c.Body,
		"html_url":   s.link("/pulls/%d#issuecomment-%d", c.Pull, c.ID),
		"created_at": c.Created.Format(time.RFC3339), "updated_at": c.Updated.Format(time.RFC3339)}
}

func (s *StandIn) giteaReview(r *StandInReview) map[string]any {
	state, updated, comments := "COMMENT", r.Submitted, 0
	if r.Pending {
		state, updated = "PENDING", r.Drafted
	}
	for _, c := range s.said {
		if c.Review == r.ID {
			comments++
		}
	}
	return map[string]any{"id": r.ID, "user": s.giteaUser(r.Author), "state": state, "body": r.Body,
		"comments_count": comments, "html_url": s.link("/pulls/%d#issuecomment-%d", r.Pull, r.ID),
		"submitted_at": r.Drafted.Format(time.RFC3339), "updated_at": updated.Format(time.RFC3339)}
}

func (s *StandIn) giteaLine(c *StandInComment) map[string]any {
	out := map[string]any{"id": c.ID, "user": s.giteaUser(c.Author), "body": c.Body, "pull_request_review_id": c.Review,
		"path": c.Path, "diff_hunk": c.Hunk, "position": c.Line, "original_position": 0,
		"html_url":   s.link("/pulls/%d#issuecomment-%d", c.Pull, c.ID),
		"created_at": c.Created.Format(time.RFC3339), "updated_at": c.Updated.Format(time.RFC3339)}
	if c.Old {
		out["position"], out["original_position"] = 0, c.Line
	}
	return out
}
