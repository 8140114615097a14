package forgetest

import (
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// What a StandIn has of reviewers. Whom it does not know as one of its People, or its Teams, cannot be asked, nor can the
// account that writes.

func (s *StandIn) mayReview(who string) bool {
	if owner, team, ok := strings.Cut(who, "/"); ok {
		return owner == s.Owner && slices.Contains(s.Teams, team)
	}
	return who != s.writer() && s.People[who] != ""
}

// review adds a reviewer, who is told of it unless he was one before.
func (p *StandInPull) review(who string, before []string) {
	if slices.Contains(p.Reviewers, who) {
		return
	}
	p.Reviewers = append(p.Reviewers, who)
	if !slices.Contains(before, who) {
		p.Asked++
	}
}

// reviewed reports whether an account has handed in a review.
func (s *StandIn) reviewed(p *StandInPull, who string) bool {
	return slices.ContainsFunc(s.reviews, func(r *StandInReview) bool { return r.Pull == p.Number && r.Author == who && !r.Pending })
}

// wrote is the account of a commit's author: that before the "@" of the address.
func (s *StandIn) wrote(commit string) string {
	out, err := exec.Command("git", "-C", s.Dir, "log", "-1", "--format=%ae", commit, "--").Output()
	account, _, _ := strings.Cut(strings.TrimSpace(string(out)), "@")
	if err != nil || s.People[account] == "" {
		return ""
	}
	return account
}

// asked asks for reviews in the way of GitHub and Gitea: all, or none if one cannot be asked.
func (s *StandIn) asked(x *exchange, p *StandInPull) (refused string) {
	var in struct {
		Reviewers []string
		Teams     []string `json:"team_reviewers"`
	}
	if !x.decode(&in) {
		return "no JSON"
	}
	who := in.Reviewers
	for _, team := range in.Teams {
		who = append(who, s.Owner+"/"+team)
	}
	for _, w := range who {
		if !s.mayReview(w) {
			return w
		}
	}
	for _, w := range who {
		if s.reviewed(p, w) {
			p.Asked++ // once more
		}
		p.review(w, nil)
	}
	return ""
}

func (s *StandIn) githubReviews(x *exchange) bool {
	switch {
	case x.is("GET", "repos", "*", "*", "commits"):
		list := []map[string]any{}
		if sha := x.r.URL.Query().Get("sha"); len(sha) == 40 {
			list = append(list, s.githubCommit(sha))
		}
		x.say(http.StatusOK, list)
	case x.is("POST", "repos", "*", "*", "pulls", "*", "requested_reviewers") && s.pull(x.number(4)) != nil:
		p := s.pull(x.number(4))
		if refused := s.asked(x, p); refused != "" {
			x.githubSays(http.StatusUnprocessableEntity, fmt.Sprintf("Reviews may only be requested from collaborators. "+
				"One or more of the users or teams you specified is not a collaborator of the %s/%s repository.", s.Owner, s.Name))
			return true
		}
		x.say(http.StatusCreated, s.githubPull(p, false))
	default:
		return false
	}
	return true
}

func (s *StandIn) githubCommit(sha string) map[string]any {
	at := "https://api.example.com/commits/" + sha
	var author any
	if account := s.wrote(sha); account != "" {
		author = githubUser(account)
	}
	return map[string]any{"url": at, "sha": sha, "node_id": "C_1", "html_url": at, "comments_url": at, "parents": []any{},
		"author": author, "committer": nil, "commit": map[string]any{"url": at, "author": nil, "committer": nil,
			"message": "", "comment_count": 0, "tree": map[string]any{"sha": sha, "url": at}}}
}

func githubTeam(slug string) map[string]any {
	t := map[string]any{"id": accountID(slug), "node_id": "T_1", "name": slug, "slug": slug, "description": nil,
		"permission": "push", "parent": nil, "type": "organization"}
	for _, f := range []string{"url", "html_url", "members_url", "repositories_url"} {
		t[f] = "https://api.example.com/teams/" + slug
	}
	return t
}

// githubAccount is what the host shows of an account to everybody.
func githubAccount(login string) map[string]any {
	u := githubUser(login)
	maps.Copy(u, map[string]any{"name": nil, "company": nil, "blog": nil, "location": nil, "email": nil, "hireable": nil,
		"bio": nil, "public_repos": 0, "public_gists": 0, "followers": 0, "following": 0,
		"created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"})
	return u
}

func gitlabUser(name string) map[string]any {
	return map[string]any{"id": accountID(name), "username": name, "name": name, "state": "active"}
}

func (s *StandIn) giteaReviews(x *exchange) bool {
	switch {
	case x.is("GET", "repos", "*", "*", "git", "commits", "*"):
		var author any
		if account := s.wrote(x.parts[5]); account != "" {
			author = s.giteaUser(account)
		}
		x.say(http.StatusOK, map[string]any{"sha": x.parts[5], "author": author})
	case x.is("POST", "repos", "*", "*", "pulls", "*", "requested_reviewers") && s.pull(x.number(4)) != nil:
		if refused := s.asked(x, s.pull(x.number(4))); refused != "" {
			status := http.StatusNotFound
			if refused == s.writer() {
				status = http.StatusUnprocessableEntity
			}
			s.giteaSays(x, status, "Not a reviewer: "+refused)
			return true
		}
		x.say(http.StatusCreated, []any{})
	default:
		return false
	}
	return true
}

// giteaAsked are the requests for reviews, which the host lists among the reviews.
func (s *StandIn) giteaAsked(number int) (out []map[string]any) {
	for i, w := range s.pull(number).Reviewers {
		r := map[string]any{"id": 1 + i, "state": "REQUEST_REVIEW", "body": "", "user": nil, "team": nil,
			"html_url": s.link("/pulls/%d", number), "comments_count": 0, "submitted_at": s.now().Format(time.RFC3339),
			"updated_at": s.now().Format(time.RFC3339)}
		if _, team, ok := strings.Cut(w, "/"); ok {
			r["team"] = map[string]any{"id": 1, "name": team}
		} else {
			r["user"] = s.giteaUser(w)
		}
		out = append(out, r)
	}
	return out
}
