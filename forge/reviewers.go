package forge

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"docent/api"
	"docent/forge/git"
	"docent/forge/host"
	"docent/internal/glob"
)

const (
	maxReviewers = 10        // that one pull request is given; GitHub takes 15
	maxAuthors   = 5         // of a change of code, who are asked to review
	maxOwners    = 256 << 10 // bytes of a CODEOWNERS file
	maxRules     = 2000      // of it
	maxOwned     = 500       // changed files that are held against it
)

// askReviews asks for the reviews of a pull request: those whom the project names when it is opened, and those whom a
// publication names. Who was asked already, or has reviewed it, is not asked again. Whom the host refuses is no reason to
// lose the pull request.
func (h *Hub) askReviews(ctx context.Context, s *session, server host.Host, p proposal, pull host.Pull, isNew bool) error {
	who := slices.Clone(p.Reviewers)
	if len(who) == 0 && p.Project.Pulls.Reviewers == "" {
		return nil
	}
	base, err := s.store.Head(s.base)
	if err != nil {
		return err
	}
	// The first commit of a branch builds on what its base has.
	if first, err := s.store.Contains(base, p.parent); err != nil {
		return err
	} else if first {
		named, err := reviewers(s, p.Publication)
		if err != nil {
			return err
		}
		who = append(who, named...)
	}
	who = each(who)
	if len(who) > 0 && !isNew {
		asked, err := server.Reviewers(ctx, pull.Number)
		if err != nil {
			return err
		}
		who = slices.DeleteFunc(who, func(w string) bool { return holds(asked, w) })
	}
	if len(who) == 0 {
		return nil
	}
	who = who[:min(len(who), maxReviewers)]
	err = server.Ask(ctx, pull.Number, who)
	if !errors.Is(err, ErrMisconfigured) {
		return err
	}
	for _, w := range who { // one whom the host refuses has it refuse all
		if len(who) > 1 {
			err = server.Ask(ctx, pull.Number, []string{w})
		}
		switch {
		case errors.Is(err, ErrMisconfigured):
			h.o.Log.Warn("could not request a review", "project", p.Project.ID, "job", p.Job, "pull", pull.Link,
				"reviewer", w, "error", err)
		case err != nil:
			return err
		}
	}
	return nil
}

// each is a list of names without those that it has before, whatever their case.
func each(names []string) (out []string) {
	for _, name := range names {
		if !holds(out, name) {
			out = append(out, name)
		}
	}
	return out
}

func holds(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}

// reviewers are those whom the project asks to review a publication.
func reviewers(s *session, p Publication) (out []string, err error) {
	for _, who := range p.Project.Pulls.ReviewerList() {
		switch {
		case strings.EqualFold(who, api.CodeAuthors): // the publication names them
		case !strings.EqualFold(who, api.CodeOwners):
			out = append(out, who)
		default:
			owners, err := codeOwners(s.store, s.base, p.Project.Host)
			if err != nil {
				return nil, err
			}
			for _, c := range p.Changes[:min(len(p.Changes), maxOwned)] {
				out = each(append(out, owners.of(c.Path)...))
			}
		}
	}
	return out, nil
}

// An ownership is what a CODEOWNERS file says: in each of its sections the last rule that matches a file decides.
type ownership [][]ownedBy

type ownedBy struct {
	pattern string
	files   glob.List
	owners  []string
}

// codeOwners reads the file that the host goes by. Gitea and Forgejo have rules of another form, and ask those whom they
// name themselves.
func codeOwners(s *git.Store, base string, kind api.HostKind) (ownership, error) {
	places := []string{".github/codeowners", "codeowners", "docs/codeowners"}
	switch kind {
	case api.HostGitLab:
		places = []string{"codeowners", "docs/codeowners", ".gitlab/codeowners"}
	case api.HostGitea:
		return nil, nil
	}
	text, err := firstText(s, base, places, maxOwners)
	return readOwners(text), err
}

func readOwners(text string) ownership {
	out := ownership{nil}
	var standard []string // owners of a section's rules that name none
	n := 0
	for line := range strings.Lines(text) {
		if n++; n > maxRules {
			break
		}
		line, _, _ = strings.Cut(line, " #")
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		if head := strings.TrimPrefix(line, "^"); strings.HasPrefix(head, "[") && strings.Contains(head, "]") { // GitLab's
			rest := head[strings.LastIndexByte(head, ']')+1:]
			out, standard = append(out, nil), accounts(strings.Fields(rest))
			continue
		}
		words := strings.Fields(strings.ReplaceAll(line, `\ `, "\x00"))
		pattern := strings.ReplaceAll(words[0], "\x00", `\ `)
		owners := accounts(words[1:])
		if len(words) == 1 {
			owners = standard
		}
		if list := glob.NewList(pattern); len(list) == 1 && !list[0].Keep {
			last := &out[len(out)-1]
			*last = append(*last, ownedBy{pattern, list, owners})
		}
	}
	return out
}

// accounts are those of a rule's owners that can be asked: not addresses, nor GitLab's roles.
func accounts(words []string) (out []string) {
	for _, w := range words {
		if name, ok := strings.CutPrefix(w, "@"); ok && name != "" && name[0] != '@' {
			out = append(out, name)
		}
	}
	return out
}

// of is whose a file is.
func (o ownership) of(file string) (out []string) {
	for _, rules := range o {
		for _, r := range slices.Backward(rules) {
			matches := r.files.Last(file) != nil
			if strings.HasSuffix(r.pattern, "/*") { // the files of a folder, and not those of its folders
				matches = matches && r.files.Last(path.Dir(file)) == nil
			}
			if matches {
				out = append(out, r.owners...)
				break
			}
		}
	}
	return out
}

// Authors are the accounts of those who wrote commits of a project's repository, the newest first, as far as its code host
// knows them.
func (h *Hub) Authors(ctx context.Context, p api.Project, commits []Commit) ([]string, error) {
	if !host.KeepsPulls(p.Host) {
		return nil, nil
	}
	server, err := h.hosts.For(p)
	if err != nil {
		return nil, err
	}
	var names, out []string
	for _, c := range commits {
		if holds(names, c.Author) {
			continue
		}
		if names = append(names, c.Author); len(names) > maxAuthors {
			break
		}
		account, err := server.CommitAuthor(ctx, c.Hash)
		if err != nil {
			return nil, err
		}
		if account != "" {
			out = append(out, account)
		}
	}
	return each(out), nil
}
