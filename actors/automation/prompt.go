package automation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
	"unicode/utf8"

	"docent/actors/job"
	"docent/api"
	"docent/forge/host"
)

const maxPromptFile = 100_000 // characters, as of any instruction

// Check completes a new automation, or says what is wrong with it: when it is due first, and from which commit on
// pushes count.
func Check(ctx context.Context, docs Documentation, p api.Project, au api.Automation, now time.Time) (api.Automation,
	error) {
	if au.Cron != "" {
		next, err := NextTime(au, now)
		if err != nil {
			return au, err
		}
		au.Next = &next
	}
	if au.Check {
		if code, _ := codeOf(p, au.Repository); !host.KeepsPulls(code.Host) {
			return au, invalid("repository", "is checked on GitHub, GitLab, Gitea and Forgejo: the project has none of these hosts")
		}
		return au, nil
	}
	data, commit, err := docs.File(ctx, p, au.Prompt)
	if errors.Is(err, fs.ErrNotExist) {
		return au, invalid("prompt", fmt.Sprintf("there is no file %q in the documentation's repository", au.Prompt))
	}
	if err != nil {
		return au, err
	}
	au.Seen = commit
	_, err = fill(au.Prompt, data, strings.NewReplacer())
	return au, err
}

// instruction is what the prompt file says. Words in it stand for what the run is about.
func (r *Runner) instruction(ctx context.Context, p api.Project, au api.Automation, run api.AutomationRun) (
	string, job.Follows, error,
) {
	data, _, err := r.Documentation.File(ctx, p, au.Prompt)
	if errors.Is(err, fs.ErrNotExist) {
		return "", job.Follows{}, &runError{fmt.Sprintf("the prompt file %q is not in the repository", au.Prompt), err}
	}
	if err != nil {
		return "", job.Follows{}, fmt.Errorf("read %s: %w", au.Prompt, err)
	}
	words := []string{"{{commit}}", run.Commit, "{{repository}}", run.Repository, "{{date}}", run.At.UTC().Format(time.DateOnly)}
	told, follows, err := r.told(ctx, p, au, run, string(data))
	if err != nil {
		return "", follows, err
	}
	text, err := fill(au.Prompt, data, strings.NewReplacer(append(words, told...)...))
	return text, follows, err
}

// fill checks a prompt file and fills it in.
func fill(name string, data []byte, words *strings.Replacer) (string, error) {
	text := strings.TrimSpace(strings.TrimPrefix(string(data), "\ufeff"))
	switch {
	case text == "":
		return "", &runError{fmt.Sprintf("the prompt file %q is empty", name), nil}
	case !utf8.ValidString(text), strings.ContainsRune(text, 0):
		return "", &runError{fmt.Sprintf("the prompt file %q is no text", name), nil}
	}
	text = words.Replace(text)
	if utf8.RuneCountInString(text) > maxPromptFile {
		return "", &runError{fmt.Sprintf("the prompt file %q has more than %d characters", name, maxPromptFile), nil}
	}
	return text, nil
}
