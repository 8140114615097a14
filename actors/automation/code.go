package automation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"docent/actors/job"
	"docent/agent/affected"
	"docent/api"
	"docent/forge"
	"docent/internal/brief"
)

// Bounds on what an instruction is told of a change.
const (
	maxDiffTold    = 40_000 // bytes
	maxCommitsTold = 50
	maxPagesTold   = 20
)

// errNothing says that a change concerns no page, for an instruction that asks for those it does.
var errNothing = errors.New("no page is concerned")

// told are the words of a prompt file that stand for a change of code: {{diff}}, {{commits}} and {{pages}}. The code is read
// only if one of them is there, or if those who changed it are asked for reviews.
func (r *Runner) told(ctx context.Context, p api.Project, au api.Automation, run api.AutomationRun, prompt string) (
	words []string, follows job.Follows, _ error,
) {
	words = []string{"{{diff}}", "", "{{commits}}", "", "{{pages}}", ""}
	asked := strings.Contains(prompt, words[0]) || strings.Contains(prompt, words[2]) || strings.Contains(prompt, words[4])
	reviewed := run.Commit != "" && run.Repository != "" && slices.Contains(p.Pulls.ReviewerList(), api.CodeAuthors)
	code, ok := p.CodeSource(au.Repository)
	if !asked && (!reviewed || !ok) {
		return nil, follows, nil
	}
	if !ok {
		return nil, follows, &runError{fmt.Sprintf("the prompt file asks for the change, and the project has no source of kind code for the repository %q: "+
			"add it with docent source add %s LABEL --kind code --address URL --repository OWNER/NAME", au.Repository, p.ID), nil}
	}
	change, err := r.Documentation.Change(ctx, code, au.SeenCode, run.Commit)
	if err != nil {
		return nil, follows, fmt.Errorf("read the change of %s: %w", au.Repository, err)
	}
	if reviewed {
		if follows.Authors, err = r.authors(ctx, p, code, change.Commits); err != nil || !asked {
			return nil, follows, err
		}
	}
	var commits strings.Builder
	for _, c := range change.Commits[:min(len(change.Commits), maxCommitsTold)] {
		fmt.Fprintf(&commits, "> %.12s %s (%s)\n", c.Hash, brief.Line(c.Subject), brief.Line(c.Author))
	}
	pages, err := r.concerned(ctx, p, au, change, commits.String())
	if err != nil {
		return nil, follows, err
	}
	r.Log.Info("checked a code change against the pages", "project", p.ID, "automation", au.ID, "commit", run.Commit,
		"commits", len(change.Commits), "pages", len(pages.Findings))
	if len(pages.Findings) == 0 && strings.Contains(prompt, words[4]) {
		return nil, follows, errNothing
	}
	if strings.Contains(prompt, words[4]) {
		for _, f := range pages.Findings {
			follows.Pages = append(follows.Pages, f.Page)
		}
	}
	words[1] = quoted(brief.Bytes(change.Diff, maxDiffTold, "\n… (the rest is left out)\n"))
	words[3], words[5] = commits.String(), quoted(pages.Text())
	return words, follows, nil
}

// authors are the accounts of those who wrote a change of code, if the documentation is on the same host.
func (r *Runner) authors(ctx context.Context, p, code api.Project, commits []forge.Commit) ([]string, error) {
	if code.Host != p.Host || code.HostURL != p.HostURL {
		return nil, nil
	}
	list, err := r.Code.Authors(ctx, code, commits)
	if errors.Is(err, forge.ErrMisconfigured) {
		r.Log.Warn("the authors of a code change are unknown", "project", p.ID, "repository", code.Repository, "error", err)
		return nil, nil
	}
	return list, err
}

// concerned are the pages that a change concerns.
func (r *Runner) concerned(ctx context.Context, p api.Project, au api.Automation, change Change, message string) (affected.Result, error) {
	docs, err := r.Documentation.Pages(ctx, p)
	if err != nil {
		return affected.Result{}, fmt.Errorf("read the documentation of %s: %w", p.ID, err)
	}
	x, err := affected.NewIndex(ctx, docs)
	if err != nil {
		return affected.Result{}, err
	}
	o := affected.Options{Most: maxPagesTold, Message: message, Alive: change.Alive}
	if strings.EqualFold(p.Repository, au.Repository) {
		o.Docs = p.DocsDir
	}
	return x.Find(affected.Parse(change.Diff), o), nil
}

// quoted has each line of what others wrote be a quotation, which is no instruction.
func quoted(text string) string {
	if text = strings.TrimRight(text, "\n"); text == "" {
		return "> (nothing)"
	}
	return "> " + strings.ReplaceAll(text, "\n", "\n> ")
}

// gather is how long a push still waits for further ones. If it waits no more, those that came after it are one run with it:
// the newest, which is returned; the others are skipped.
func (r *Runner) gather(ctx context.Context, au api.Automation, open []api.AutomationRun) (api.AutomationRun, time.Duration, error) {
	run := open[0]
	if au.Wait() == 0 || run.Trigger != api.TriggerPush || run.Repository == "" {
		return run, 0, nil
	}
	if left := run.At.Add(au.Wait()).Sub(r.Now()); left > 0 && left <= au.Wait() { // more: the clock was set back
		return run, left, nil
	}
	for _, next := range open[1:] {
		if next.Trigger != api.TriggerPush || next.Repository != run.Repository {
			continue
		}
		run.Status, run.Reason = api.RunSkipped, fmt.Sprintf("a later push is one run with it: %.12s", next.Commit)
		if err := r.Catalog.SaveRun(ctx, run); err != nil {
			return run, 0, err
		}
		run = next
	}
	return run, 0, nil
}
