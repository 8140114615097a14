package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"docent/agent/affected"
	"docent/cmd/docent/build"
	"docent/cmd/docent/cli"
	"docent/internal/glob"
)

// A docsCheck is what `docent check-docs` is told.
type docsCheck struct {
	diff, docs, failOn, message string
	formats, exclude            []string
	most                        int
}

func newCheckDocsCommand() *cobra.Command {
	var c docsCheck
	cmd := &cobra.Command{
		Use: "check-docs", Short: "Name the pages that a code change affects, in any CI", Args: cobra.NoArgs,
		Long: "Name the documentation pages that a code change affects, with lines and reasons: pages that mention a flag, setting,\n" +
			"environment variable, endpoint, function, or default that the change removes, renames, adds, or changes. It needs no server\n" +
			"and no language model, and edits nothing.\n\n" +
			"The change is a range of commits in the current folder's repository, a file with a diff, or - for standard input.\n" +
			"The exit status is 6 if a page is affected as --fail-on says.",
		Example: "  docent check-docs --diff origin/main...HEAD\n" +
			"  git diff HEAD~1 | docent check-docs --diff - --docs ../handbook --format github --format sarif=docs.sarif",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.Required(cmd, "diff"); err != nil {
				return err
			}
			return c.run(cmd)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&c.diff, "diff", "", "range of commits, such as main...HEAD, a file with a diff, or - for standard input")
	flags.StringVar(&c.docs, "docs", "", "folder of the documentation; docs if there is one, otherwise the current folder")
	flags.StringArrayVar(&c.formats, "format", []string{"text"},
		"text, json, sarif, github (annotations of a workflow) or markdown (a comment); FORMAT=FILE writes a file (repeatable)")
	flags.StringVar(&c.failOn, "fail-on", "outdated", "which pages make the status 6: outdated, related (any) or never")
	flags.StringVar(&c.message, "message", "", "title of the change (default: the commit messages)")
	flags.StringSliceVar(&c.exclude, "exclude", nil, "pages to leave out, as in .gitignore, relative to --docs")
	flags.IntVar(&c.most, "max-pages", affected.MostNamed, "maximum number of pages to name")
	return cmd
}

func (c docsCheck) run(cmd *cobra.Command) error {
	for _, f := range c.formats {
		if f, _, _ = strings.Cut(f, "="); !slices.Contains([]string{"text", "json", "sarif", "github", "markdown"}, f) {
			return cli.Usagef("--format %q is none of text, json, sarif, github and markdown", f)
		}
	}
	if !slices.Contains([]string{"outdated", "related", "never"}, c.failOn) {
		return cli.Usagef("--fail-on %q is none of outdated, related and never", c.failOn)
	}
	if c.most < 1 || c.most > 100 {
		return cli.Usagef("--max-pages must be from 1 to 100")
	}
	ctx := cmd.Context()
	text, message, err := c.change(ctx, cmd.InOrStdin())
	if err != nil {
		return err
	}
	if c.docs == "" {
		c.docs = "."
		if info, err := os.Stat("docs"); err == nil && info.IsDir() {
			c.docs = "docs"
		}
	}
	git := gitHere(ctx)
	docs, folder, err := c.pages(git)
	if err != nil {
		return err
	}
	x, err := affected.NewIndex(ctx, docs)
	if err != nil {
		return err
	}
	if x.Pages() == 0 {
		return fmt.Errorf("there are no pages in %s: name the folder of the documentation with --docs", c.docs)
	}
	d := affected.Parse(text)
	if len(d.Files) == 0 && d.Message != "" && !gitText.MatchString(text) {
		return errors.New("what --diff gives is no diff")
	}
	r := x.Find(d, affected.Options{Most: c.most, Docs: folder, Message: message, Alive: git.alive(ctx, folder)})
	for _, f := range c.formats {
		var text bytes.Buffer
		format, file, named := strings.Cut(f, "=")
		if err := printPages(&text, format, r); err != nil {
			return err
		}
		if named {
			err = os.WriteFile(file, text.Bytes(), 0o644) //nolint:gosec // other steps of a workflow read it
		} else {
			_, err = cmd.OutOrStdout().Write(text.Bytes())
		}
		if err != nil {
			return err
		}
	}
	if worst := r.Worst(); c.failOn != "never" && (worst == affected.Outdated || worst != "" && c.failOn == "related") {
		return cli.WithStatus(cli.ExitDocsConcerned, fmt.Errorf("pages in %s that this change concerns: %d", c.docs, len(r.Findings)+r.More))
	}
	return nil
}

// gitText matches what git writes of commits that change no file.
var gitText = regexp.MustCompile(`\A\s*(?:commit [0-9a-f]{7,64}\b|From [0-9a-f]{40})`)

// change is the diff, and what its author says of it.
func (c docsCheck) change(ctx context.Context, stdin io.Reader) (text, message string, err error) {
	limited := func(r io.Reader) (string, error) {
		data, err := io.ReadAll(io.LimitReader(r, affected.MaxDiff+1))
		return string(data), err
	}
	if c.diff == "-" {
		text, err = limited(stdin)
		return text, c.message, err
	}
	if f, openErr := os.Open(c.diff); openErr == nil {
		defer func() { _ = f.Close() }()
		if info, err := f.Stat(); err == nil && !info.IsDir() {
			text, err = limited(f)
			return text, c.message, err
		}
	}
	if strings.HasPrefix(c.diff, "-") {
		return "", "", cli.Usagef("--diff %q is neither a file nor a range of commits", c.diff)
	}
	if text, err = runGit(ctx, "diff", "-M", "--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/",
		c.diff, "--"); err != nil {
		return "", "", fmt.Errorf("read the change %q, which is neither a file nor a range of commits that git knows: %w", c.diff, err)
	}
	if c.message == "" {
		commits := strings.Replace(c.diff, "...", "..", 1)
		if !strings.Contains(commits, "..") {
			commits += "..HEAD"
		}
		c.message, _ = runGit(ctx, "log", "--no-color", "--format=%B", "-n", "50", commits, "--") // the diff alone does as well
	}
	return text, c.message, nil
}

// runGit runs git in the current folder. What it prints is bounded as a diff is.
func runGit(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.WaitDelay = time.Second
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	data, err := io.ReadAll(io.LimitReader(out, affected.MaxDiff+1))
	_, _ = io.Copy(io.Discard, out)
	if e := cmd.Wait(); e != nil {
		return string(data), fmt.Errorf("git %s: %w: %s", args[0], e, strings.TrimSpace(said.String()))
	}
	return string(data), err
}

// A checkout is the git repository that the current folder lies in; its root is empty if there is none.
type checkout struct{ root string }

func gitHere(ctx context.Context) checkout {
	root, err := runGit(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return checkout{}
	}
	return checkout{strings.TrimRight(root, "\r\n")}
}

// name is a file's path as diffs of the repository have it; as it was given outside of one.
func (g checkout) name(file string) string {
	full, err := filepath.Abs(file)
	if err == nil && g.root != "" {
		if real, err := filepath.EvalSymlinks(full); err == nil {
			full = real
		}
		if rel, err := filepath.Rel(g.root, full); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel)
		}
	}
	return path.Clean(filepath.ToSlash(file))
}

// alive looks a name up in the code of the checkout; nil if there is none.
func (g checkout) alive(ctx context.Context, docs string) func(string) bool {
	if g.root == "" {
		return nil
	}
	return func(name string) bool {
		args := []string{"-C", g.root, "grep", "-l", "-F", "-w", "-e", name, "--", "."}
		if docs != "." && docs != "" && !strings.HasPrefix(docs, "..") {
			args = append(args, ":(exclude)"+docs)
		}
		out, _ := runGit(ctx, args...) // it fails if there is nothing
		for file := range strings.Lines(out) {
			if affected.IsCode(strings.TrimSpace(file)) {
				return true
			}
		}
		return false
	}
}

// pages lists the documentation, by the names that the change has for its files.
func (c docsCheck) pages(git checkout) (affected.Docs, string, error) {
	folder, at := git.name(c.docs), map[string]string{}
	leftOut := glob.NewList(c.exclude...)
	var docs affected.Docs
	err := filepath.WalkDir(c.docs, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(c.docs, file)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if entry.IsDir() {
			if name := entry.Name(); rel != "." && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "vendor") {
				return fs.SkipDir
			}
			return nil
		}
		if by := leftOut.LastAsGit(rel); !entry.Type().IsRegular() || by != nil && !by.Keep {
			return nil
		}
		name := path.Join(folder, rel)
		at[name] = file
		docs.Files = append(docs.Files, name)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return docs, folder, cli.Usagef("--docs %q is not there", c.docs)
	}
	docs.Read = func(name string) ([]byte, error) { return os.ReadFile(at[name]) }
	return docs, folder, err
}

func printPages(w io.Writer, format string, r affected.Result) error {
	text := ""
	switch format {
	case "json":
		return cli.PrintJSON(w, r)
	case "sarif":
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r.SARIF(build.Get().Version))
	case "github":
		text = r.Annotations()
	case "markdown":
		text = r.Markdown(nil)
	default:
		text = r.Text()
	}
	_, err := io.WriteString(w, text)
	return err
}
