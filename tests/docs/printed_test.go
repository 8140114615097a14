package docs

import (
	"errors"
	"go/scanner"
	"go/token"
	"html"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"docent/cmd/docent/cli"
	"docent/cmd/docent/commands"
)

var (
	// quotedCommand is a command within a sentence.
	quotedCommand = regexp.MustCompile("(?:`|<code[^>]*>)(?:sudo -u docent |bin/)?docent ([^`<\n]+)(?:`|</code>)")
	// mentionedCommand is the name of one that is not set apart, as in what doctor advises.
	mentionedCommand = regexp.MustCompile(`(?:^|[\s(:;,"])docent ([a-z][a-z-]*)\b`)
	lineOfCommand    = regexp.MustCompile(`(?m)^ *docent (\S.*)$`)

	// placeholder is what the program puts in, or what the reader does.
	placeholder = regexp.MustCompile(`\{\{[^}]*\}\}|%[-+#0-9.]*[a-z]|"[^"]*"|'[^']*'|<[^>]*>`)
	shellsOwn   = regexp.MustCompile(` (\|\|?|>>?|<{1,3}|&&|#) .*$|;.*$`)
)

// otherWords come after docent's name in sentences that name no command.
var otherWords = []string{"cannot", "docent", "host", "if", "knows", "left", "node"}

// commandError says what is wrong with a command as it is printed. Without arguments it may be a command's name alone.
func commandError(text string) error {
	text = shellsOwn.ReplaceAllString(html.UnescapeString(text), "")
	text = strings.NewReplacer("[", "", "]", "", "…", "X", `\`, "").Replace(placeholder.ReplaceAllString(text, "X"))
	args := strings.Fields(text)
	if i := slices.Index(args, "COMMAND"); i >= 0 {
		args = args[:i]
	}
	if len(args) == 0 || args[0] == "X" || strings.HasPrefix(args[0], "$") {
		return nil // it is put in
	}
	root := allCommands()
	found, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if err := found.ParseFlags(rest); err != nil && !errors.Is(err, pflag.ErrHelp) && !strings.Contains(err.Error(), "needs an argument") {
		return err
	}
	if given := found.Flags().Args(); len(given) > 0 {
		if found.HasSubCommands() && !strings.Contains(found.Use, " ") {
			return cli.UnknownCommand(found, given[0])
		}
		if found.Args != nil {
			return found.Args(found, given)
		}
	}
	return nil
}

// allCommands are Docent's with those that cobra adds when it runs them.
func allCommands() *cobra.Command {
	root := commands.New(cli.Program{})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd("completion")
	root.InitDefaultVersionFlag()
	return root
}

// Every command that a message, a help text, a page of the console or a page of the documentation prints is one.
func TestEveryPrintedCommandExists(t *testing.T) {
	t.Parallel()
	top := allCommands()
	var names []string
	for _, c := range top.Commands() {
		names = append(append(names, c.Name()), c.Aliases...)
	}
	quoted, mentioned := 0, 0
	check := func(where, text string, prose bool) {
		for _, m := range quotedCommand.FindAllStringSubmatch(text, -1) {
			quoted++
			if err := commandError(m[1]); err != nil {
				t.Errorf("%s prints `docent %s`: %v", where, m[1], err)
			}
		}
		if !prose {
			return
		}
		for _, m := range mentionedCommand.FindAllStringSubmatch(text, -1) {
			mentioned++
			if !slices.Contains(names, m[1]) && !slices.Contains(otherWords, m[1]) {
				t.Errorf("%s names docent %s: there is no such command", where, m[1])
			}
		}
	}
	root := filepath.Join("..", "..")
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || slices.Contains([]string{".git", "bin", "dist", "node_modules", "testdata", "results", "decisions", "measurements"}, d.Name()) {
			return map[bool]error{true: fs.SkipDir}[d != nil && d.IsDir()]
		}
		switch filepath.Ext(path) {
		case ".go":
			if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "tests/") {
				return nil
			}
			eachString(t, filepath.Join(root, path), func(line int, text string) {
				check(path+":"+strconv.Itoa(line), text, true)
			})
		case ".html", ".md", ".mdx", ".yaml", ".toml", ".service", ".env":
			if path == "CHANGELOG.md" { // of commands as they were
				return nil
			}
			content, err := os.ReadFile(filepath.Join(root, path))
			if err != nil {
				return err
			}
			check(path, string(content), false)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, m := range lineOfCommand.FindAllStringSubmatch(cmd.Long+"\n"+cmd.Example, -1) {
			quoted++
			if err := commandError(m[1]); err != nil {
				t.Errorf("the help of %s prints docent %s: %v", cmd.CommandPath(), m[1], err)
			}
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(top)
	if quoted < 200 || mentioned < 100 {
		t.Errorf("only %d commands and %d names of commands were found", quoted, mentioned)
	}
}

// eachString calls f with each string in a file of Go.
func eachString(t *testing.T, path string, f func(line int, text string)) {
	t.Helper()
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file := token.NewFileSet().AddFile(path, -1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, 0)
	for pos, tok, literal := s.Scan(); tok != token.EOF; pos, tok, literal = s.Scan() {
		if tok != token.STRING {
			continue
		}
		if text, err := strconv.Unquote(literal); err == nil {
			f(file.Line(pos), text)
		}
	}
}
