package agent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"docent/agent/check"
	"docent/agent/edit"
	"docent/agent/pages"
	"docent/agent/say"
	"docent/agent/workspace"
	"docent/api"
	"docent/internal/tracing"
	"docent/site/markup"
)

// A tool is one thing that a model may ask for. What it gives is text for the model; a refusal is a failed result.
type tool struct {
	Tool
	reads bool // its result does not change the edits
	run   func(l *loop, ctx context.Context, arguments string) (text string, failed bool, res *Result, err error)
}

// badArguments says that a call cannot be understood.
type badArguments struct{ text string }

func (e *badArguments) Error() string { return e.text }

// arguments reads the arguments of a call as strictly as is of use: what is missing or of another kind is reported in
// words.
func arguments[A any](text string) (A, error) {
	var a A
	text = cmp.Or(strings.TrimSpace(text), "{}")
	text = unfenced(text)
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return a, &badArguments{fmt.Sprintf("The argument %s must be %s, not %s.", say.Quote(kind.Field),
				jsonKind(kind.Type.Kind().String()), kind.Value)}
		}
		return a, &badArguments{"The arguments are no valid JSON object: " + say.OneLine(err.Error(), 200) +
			". Send the call again."}
	}
	return a, nil
}

// unfenced takes off the fence that some models put around what they write, whatever it is of.
func unfenced(text string) string {
	fence := text[:len(text)-len(strings.TrimLeft(text, "`~"))]
	if len(fence) < 3 {
		return text
	}
	_, inner, ok := strings.Cut(text, "\n")
	if !ok { // all in one line
		inner = strings.TrimLeft(strings.TrimPrefix(text, fence), "abcdefghijklmnopqrstuvwxyz")
	}
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(inner), fence))
}

// plainName is a tool's name without what some models and servers put before and behind it: functions.read_file,
// default_api:read_file, functions.read_file:0.
func plainName(name string) string {
	name = strings.TrimSpace(name)
	if _, ok := toolByName(name); ok {
		return name
	}
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return strings.ContainsRune(".:/", r) }) {
		if _, ok := toolByName(part); ok {
			return part
		}
	}
	return name
}

var callMarks = regexp.MustCompile(`(?i)<\|?/?(tool_calls?|function_calls?|tool_use|tool_calls_section_begin|tool_call_begin|invoke name|function=|python_tag\|)|<｜(?:tool|DSML)|\[TOOL_CALLS\]|<\|tool`)

// callName matches the places in which a text may call a tool by its name: as JSON, Python, XML, or a line of ReAct.
var callName = regexp.MustCompile(`"(?:name|tool|tool_name|function|action)"\s*:\s*"([A-Za-z0-9_.:]+)"|\bfunctions\.([a-z_]+)\b|` +
	`(?m)^[\s\[]*(?:print\()?(?:[a-z_]+\.)?([a-z_]+)\((?:\)|\w+\s*=)|^\s*<([a-z_]+)>\s*(?:<|$)|^\s*Action:\s*([a-z_]+)\s*$|^\s*\{\s*"([a-z_]+)"\s*:\s*\{`)

// callAsText reports whether an answer without calls has one in its text, as servers give it that do not read what
// their model writes.
func (l *loop) callAsText(text string) bool {
	if callMarks.MatchString(text) {
		return true
	}
	for _, m := range callName.FindAllStringSubmatch(text, 8) {
		if _, ok := toolByName(plainName(strings.Join(m[1:], ""))); ok {
			return true
		}
	}
	return false
}

func jsonKind(k string) string {
	switch k {
	case "int":
		return "a whole number"
	case "bool":
		return "true or false"
	case "slice":
		return "a list"
	case "struct":
		return "an object"
	}
	return "a " + k
}

func needs(name, value string) error {
	if strings.TrimSpace(value) == "" {
		return &badArguments{"The argument " + say.Quote(name) + " is missing."}
	}
	return nil
}

// on makes a tool of a function that only gives text.
func on[A any](do func(l *loop, ctx context.Context, a A) (string, error)) func(*loop, context.Context, string) (string,
	bool, *Result, error) {
	return func(l *loop, ctx context.Context, text string) (string, bool, *Result, error) {
		a, err := arguments[A](text)
		if err != nil {
			return "", true, nil, err
		}
		out, err := do(l, ctx, a)
		return out, false, nil, err
	}
}

type (
	searchArgs struct {
		Query string `json:"query"`
		Limit int    `json:"limit"`
	}
	listArgs struct {
		Path string `json:"path"`
		Glob string `json:"glob"`
	}
	readArgs struct {
		Path string `json:"path"`
		From int    `json:"from_line"`
		To   int    `json:"to_line"`
	}
	grepArgs struct {
		Pattern    string `json:"pattern"`
		Path       string `json:"path"`
		Regex      bool   `json:"regex"`
		IgnoreCase bool   `json:"ignore_case"`
	}
	logArgs struct {
		Path  string `json:"path"`
		Limit int    `json:"limit"`
	}
	diffArgs struct {
		Path string `json:"path"`
		From string `json:"from"`
		To   string `json:"to"`
		Pull int    `json:"pull"`
	}
	editArgs struct {
		Path string `json:"path"`
		replacement
		Edits []replacement `json:"edits"`
	}
	replacement struct {
		Old string `json:"old_text"`
		New string `json:"new_text"`
		All bool   `json:"all"`
	}
	insertArgs struct {
		Path  string `json:"path"`
		After *int   `json:"after_line"`
		Text  string `json:"text"`
	}
	undoArgs struct {
		Path string `json:"path"`
	}
	writeArgs struct {
		Path      string `json:"path"`
		Content   string `json:"content"`
		Group     string `json:"group"`
		Overwrite bool   `json:"overwrite"`
	}
	moveArgs struct {
		From string `json:"from"`
		To   string `json:"to"`
	}
	deleteArgs struct {
		Path   string `json:"path"`
		Unlink bool   `json:"unlink"`
	}
	todosArgs struct {
		Todos []struct {
			Content  string `json:"content"`
			Status   string `json:"status"`
			Priority string `json:"priority"`
		} `json:"todos"`
	}
	finishArgs struct {
		Summary string   `json:"summary"`
		Title   string   `json:"title"`
		NotDone []string `json:"not_done"`
	}
)

// object writes the JSON Schema of a tool's arguments: name, type, description, and a "!" before what is required.
func object(fields ...string) json.RawMessage {
	properties, required := map[string]any{}, []string{}
	for i := 0; i+2 < len(fields); i += 3 {
		name, ok := strings.CutPrefix(fields[i], "!")
		if ok {
			required = append(required, name)
		}
		p := map[string]any{"type": fields[i+1], "description": fields[i+2]}
		if item, ok := strings.CutPrefix(fields[i+1], "array of "); ok {
			p["type"], p["items"] = "array", map[string]any{"type": item}
		}
		properties[name] = p
	}
	b, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": required})
	if err != nil {
		panic(err)
	}
	return b
}

var todosSchema = json.RawMessage(
	`{"type":"object","required":["todos"],"properties":{"todos":{"type":"array","description":"the whole list, in order","items":{"type":"object","required":["content","status"],"properties":{"content":{"type":"string"},"status":{"type":"string","enum":["pending","in_progress","completed","cancelled"]},"priority":{"type":"string","enum":["high","medium","low"]}}}}}}`)

var editSchema = json.RawMessage(
	`{"type":"object","required":["path"],"properties":{"path":{"type":"string","description":"the file"},"old_text":{"type":"string","description":"what stands there now"},"new_text":{"type":"string","description":"what shall stand there; empty to delete"},"all":{"type":"boolean","description":"replace every occurrence"},"edits":{"type":"array","description":"several replacements in place of one, made in this order: all of them or none","items":{"type":"object","required":["old_text","new_text"],"properties":{"old_text":{"type":"string"},"new_text":{"type":"string"},"all":{"type":"boolean"}}}}}}`)

var allTools []tool

func init() {
	allTools = []tool{
		{Tool{"search_docs",
			"Search the documentation by meaning and words. Gives the best sections with their pages. The index holds the pages as they were before your edits.",
			object("!query", "string", "what to look for, in a few words", "limit", "integer",
				"how many sections; 5 if left out, at most 10")}, true, on((*loop).search)},
		{Tool{"list_files", "List the files of the documentation, with their sizes in bytes.",
			object("path", "string", "a folder; the whole documentation if left out", "glob", "string",
				"only names like this: **/*.mdx")}, true, on((*loop).list)},
		{Tool{"read_file", "Read a file, or a range of its lines. Each line is shown with its number and a tab before it, which are not part of the file.",
			object("!path", "string", "the file", "from_line", "integer", "first line, from 1", "to_line", "integer",
				"last line")}, false, on((*loop).readFile)},
		{Tool{"grep", "Find lines that contain a text, or match a regular expression (RE2), in all files or below a path.",
			object("!pattern", "string", "what to find", "path", "string", "a file, a folder or a glob; everything if left out",
				"regex", "boolean", "the pattern is a regular expression", "ignore_case", "boolean",
				"upper and lower case are the same")}, true, on((*loop).grep)},
		{Tool{"git_log", "List the commits that changed a file or a folder, newest first.",
			object("path", "string", "a file or a folder; the whole documentation if left out", "limit", "integer",
				"how many commits; 20 if left out, at most 50")}, true, on((*loop).log)},
		{Tool{"git_diff", "Show what one commit changed, several, or a pull request of the code.",
			object("path", "string", "only what lies below this file or folder; the whole documentation if left out",
				"from", "string", "the commit before the first one; that before `to` if left out", "to", "string",
				"the last commit, as git_log names it, or HEAD", "pull", "integer",
				"number of a pull request of the code, in place of commits")}, true, on((*loop).gitDiff)},
		{Tool{"edit_file", "Replace a text, or several, in a file that you have read. Each old text must occur exactly once, unless all is true. Copy it exactly, with its line breaks and blanks, without line numbers.",
			editSchema}, false, on((*loop).editFile)},
		{Tool{"insert_text", "Insert lines behind a line of a file that you have read.",
			object("!path", "string", "the file", "!after_line", "integer", "the line that the text comes behind; 0 for the beginning",
				"!text", "string", "the lines")}, false, on((*loop).insertText)},
		{Tool{"undo_file", "Take a file back to what it was before this instruction. A file that you created is deleted with delete_file.",
			object("!path", "string", "the file")}, false, on((*loop).undoFile)},
		{Tool{"write_file", "Create a new file with the whole of its content, front matter included. With overwrite it replaces a file that you have read.",
			object("!path", "string", "the file", "!content", "string", "all of it", "group", "string",
				"group of the navigation that lists a new page", "overwrite", "boolean", "replace an existing file")}, false,
			on((*loop).writeFile)},
		{Tool{"move_file", "Move or rename a page. Links to it and in it, the navigation and redirects follow.",
			object("!from", "string", "the page", "!to", "string", "its new path")}, false, on((*loop).moveFile)},
		{Tool{"delete_file",
			"Delete a file that the instruction names, or asks in words to delete. A page that others link to is only deleted with unlink, which turns these links into text.",
			object("!path", "string", "the file", "unlink", "boolean", "turn links to it into text")}, false,
			on((*loop).deleteFile)},
		{Tool{"check", "Check what you have changed: front matter, Markdown and MDX, links and anchors, images, navigation, secrets. Only problems that your edits bring are shown.",
			object()}, true, on(func(l *loop, ctx context.Context, _ struct{}) (string, error) { return l.checkTool(ctx) })},
		{Tool{"set_todos", "Set the list of things to do, which the user sees.", todosSchema}, false, on((*loop).setTodos)},
		{Tool{"finish", "Say that the work is done, or cannot be done. The edits are checked first, and you are shown the whole diff once.",
			object("!summary", "string", "what you did and why, for the reviewer: a few short sentences or a list", "title",
				"string", "title of the pull request, at most 70 characters", "not_done", "array of string",
				"what was asked and is not done, and why")}, true, runFinish},
	}
}

func toolByName(name string) (tool, bool) {
	for _, t := range allTools {
		if t.Name == name {
			return t, true
		}
	}
	return tool{}, false
}

// offers reports whether a tool can work here.
func (l *loop) offers(t tool) bool {
	switch t.Name {
	case "search_docs":
		return l.opts.Searcher != nil
	case "git_log", "git_diff":
		return docs{l}.history() != nil || len(l.codes()) > 0
	}
	return true
}

func (l *loop) tools() []Tool {
	var out []Tool
	for _, t := range allTools {
		if l.offers(t) {
			out = append(out, t.Tool)
		}
	}
	return out
}

func (l *loop) toolNames() []string {
	var out []string
	for _, t := range l.tools() {
		out = append(out, t.Name)
	}
	return out
}

func (l *loop) search(ctx context.Context, a searchArgs) (string, error) {
	if err := needs("query", a.Query); err != nil {
		return "", err
	}
	l.tell("Searching for " + say.Quote(a.Query))
	if a.Limit <= 0 {
		a.Limit = 5
	}
	found, err := l.opts.Searcher.Search(ctx, string(l.task.Project.ID), say.Middle(a.Query, 500), min(a.Limit, 10))
	if err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", say.Refuse("the search does not work now (%s); use grep", say.OneLine(err.Error(), 200))
	}
	if len(found) == 0 {
		return "Nothing was found. Try other words, or grep.", nil
	}
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, "%s — %s\n%s\n", say.OneLine(f.Path, 300), say.OneLine(f.Heading, 200),
			say.Fenced(say.Middle(say.Visible(f.Text), 1500)))
	}
	return say.Middle(b.String(), maxOutput), nil
}

// inside settles what a path of the model means: below the documentation folder, however it was written.
func (l *loop) inside(p string) (string, error) {
	name := relative(p)
	if name == "" {
		return l.Files.DocsDir, nil
	}
	if strings.HasPrefix(name, codeMark) {
		return "", say.Refuse("%s is code, which is only read", say.Quote(p))
	}
	if err := workspace.CleanPath(name); err != nil {
		return "", err
	}
	full := path.Join(l.Files.DocsDir, name)
	if !l.Files.There(full) && (name == l.Files.DocsDir || l.Files.InDocs(name)) {
		full = name
	}
	if full != l.Files.DocsDir && !l.Files.InDocs(full) {
		return "", say.Refuse("%s lies outside the documentation folder", say.Quote(p))
	}
	return full, nil
}

// text reads a file for the model.
func (l *loop) text(p string) (string, []byte, error) {
	if err := needs("path", p); err != nil {
		return "", nil, err
	}
	f, err := l.inside(p)
	if err != nil {
		return "", nil, err
	}
	if workspace.Private(l.Site.Show(f)) {
		return "", nil, say.Refuse("%s is not shown: names that begin with a dot and installed packages are left alone",
			say.Quote(p))
	}
	if !l.Files.Exists(f) {
		if l.Files.IsDir(f) {
			return "", nil, say.Refuse("%s is a folder; list_files shows what is in it", say.Quote(p))
		}
		if near, err := l.Site.Find(p); err == nil && !workspace.Private(l.Site.Show(near)) {
			if l.Files.Exists(near) && near != f {
				return "", nil, say.Refuse("there is no file %s; did you mean %s?", say.Quote(p), l.Site.Show(near))
			}
		}
		return "", nil, say.Refuse("there is no file %s; list_files shows what there is", say.Quote(p))
	}
	b, err := l.Files.Read(f)
	if err != nil {
		return "", nil, err
	}
	if !workspace.IsText(b) {
		return "", nil, say.Refuse("%s is not text in UTF-8", say.Quote(p))
	}
	return f, b, nil
}

// target settles which file is written, and refuses kinds of files that are no documentation.
func (l *loop) target(p string) (string, error) {
	if err := needs("path", p); err != nil {
		return "", err
	}
	if strings.HasSuffix(strings.TrimSpace(p), "/") {
		return "", say.Refuse("%s is a folder", say.Quote(p))
	}
	f, err := l.inside(p)
	if err != nil {
		return "", err
	}
	if err := l.Files.Writable(f); err != nil {
		return "", err
	}
	if !workspace.TextExts[strings.ToLower(path.Ext(f))] {
		return "", say.Refuse(
			"files like %s are not written; the documentation's are Markdown, MDX, JSON, YAML, TOML, text, HTML, CSS, SVG and scripts of components", say.Quote(path.Base(f)))
	}
	if check.Steering(f) {
		return "", say.Refuse("%s steers how the site is built or what runs in it; that is left to people",
			say.Quote(path.Base(f)))
	}
	return f, nil
}

func (l *loop) writeFile(_ context.Context, a writeArgs) (string, error) {
	f, err := l.target(a.Path)
	if err != nil {
		return "", err
	}
	if l.Files.Exists(f) {
		return l.overwrite(f, a)
	}
	if workspace.IsPage(f) {
		for _, ext := range []string{".md", ".mdx", ".markdown"} {
			if other := workspace.Stem(f) + ext; other != f && l.Files.Exists(other) {
				return "", say.Refuse("%s exists already and has the same address", l.Site.Show(other))
			}
		}
	}
	content := a.Content
	if content != "" && !strings.HasSuffix(content, "\n") {
		content += "\n"
	}
	if err := l.Files.Write(f, []byte(content)); err != nil {
		return "", err
	}
	l.read[f] = true
	l.Tally(f, "page created", 1)
	l.tell("Wrote " + l.Site.Show(f))
	text := fmt.Sprintf("%s is created; it has %s.", l.Site.Show(f), say.Count(len(lines([]byte(content))), "line"))
	if workspace.IsPage(f) {
		listed, err := l.listNew(f, a.Group)
		if err != nil {
			return "", err
		}
		text += listed
	}
	return text + l.lint(f), nil
}

// overwrite replaces a file that the model has read. It keeps the file's line ends and byte order mark.
func (l *loop) overwrite(f string, a writeArgs) (string, error) {
	show, content := l.Site.Show(f), a.Content
	if !a.Overwrite {
		return "", say.Refuse("%s exists already; change it with edit_file, or say overwrite", show)
	}
	if !l.read[f] {
		return "", say.Refuse("%s has not been read; read_file it before you replace it", show)
	}
	old, err := l.Files.Read(f)
	if err != nil {
		return "", err
	}
	if pages.EOL(old) == "\r\n" {
		content = strings.ReplaceAll(strings.ReplaceAll(content, "\r\n", "\n"), "\n", "\r\n")
	}
	if bytes.HasPrefix(old, []byte("\ufeff")) && !strings.HasPrefix(content, "\ufeff") {
		content = "\ufeff" + content
	}
	if string(old) == content {
		return "", say.Refuse("%s has this content already", show)
	}
	if err := l.Files.Write(f, []byte(content)); err != nil {
		return "", err
	}
	l.Tally(f, "page rewritten", 1)
	l.tell("Rewrote " + show)
	return fmt.Sprintf("%s is replaced; it has %s.", show, say.Count(len(lines([]byte(content))), "line")) + l.lint(f), nil
}

// listNew lists a new page in the navigation, if that can be edited, and says what became of it.
func (l *loop) listNew(f, group string) (string, error) {
	p, err := l.Site.Page(f)
	if err != nil {
		return "", err
	}
	before := len(l.Left)
	if err := l.ListPage(f, p.Title(), group); err != nil {
		if ref, ok := say.AsRefusal(err); ok {
			return "", say.Refuse("the page was not created: %s", ref.Text)
		}
		return "", err
	}
	l.Left = l.Left[:before]
	nav, err := l.Site.Navigation()
	switch {
	case err == nil && nav != nil && l.listed(f):
		return " It is listed in the navigation.", nil
	case err == nil && nav != nil:
		return " It is in no navigation yet: " + l.navHint(), nil
	case l.Site.Generated():
		return " The navigation was not edited: " + l.Site.WhyNoNavigation() + ".", nil
	}
	return "", nil
}

func (l *loop) navHint() string {
	if nav, err := l.Site.Navigation(); err == nil && nav != nil {
		return "add it to " + l.Site.Show(nav.File) + ", or readers will not find it."
	}
	return l.Site.WhyNoNavigation() + "."
}

// listed reports whether readers find a page in the navigation, if there is one to look at.
func (l *loop) listed(f string) bool {
	nav, err := l.Site.Navigation()
	if err != nil || nav == nil {
		return true
	}
	pages, err := nav.Pages()
	return err != nil || slices.Contains(pages, f)
}

// lint tells at once what an edit has broken within a page.
func (l *loop) lint(f string) string {
	src, err := l.Files.Read(f)
	if err != nil {
		return ""
	}
	old, _ := l.Files.Original(l.Files.First(f))
	if !workspace.IsPage(f) {
		if why := check.Unreadable(f, src); why != "" && (old == nil || check.Unreadable(f, old) == "") {
			return "\nIt does not parse any more: " + why
		}
		return ""
	}
	var b strings.Builder
	for _, p := range check.NewProblems(f, old, markup.Parse(f, src)) {
		if b.Len() < 1000 {
			fmt.Fprintf(&b, "\nThis is not sound yet, line %d: %s", p.Line, p.Message)
		}
	}
	return b.String()
}

func (l *loop) moveFile(_ context.Context, a moveArgs) (string, error) {
	if err := errors.Join(needs("from", a.From), needs("to", a.To)); err != nil {
		return "", &badArguments{err.Error()}
	}
	from, err := l.inside(a.From)
	if err != nil {
		return "", err
	}
	if !l.Files.Exists(from) {
		return "", say.Refuse("there is no file %s", say.Quote(a.From))
	}
	if _, err := l.inside(a.To); err != nil {
		return "", err
	}
	done, left := len(l.Done), len(l.Left)
	if err := (&edit.Move{From: l.Site.Show(from), To: a.To}).Run(l.Run); err != nil {
		return "", err
	}
	for now, was := range l.Origin {
		if l.read[from] && (was == from || l.Files.First(now) == from) {
			l.read[now] = true
		}
	}
	return l.account(done, left), nil
}

// account tells what an operation of the built-in instructions did. The words go into the result, not into the report:
// that is the model's.
func (l *loop) account(done, left int) string {
	text := strings.Join(append(slices.Clone(l.Done[done:]), l.Left[left:]...), ". ") + "."
	l.tell(say.OneLine(text, 300))
	return text
}

func (l *loop) deleteFile(_ context.Context, a deleteArgs) (string, error) {
	if err := needs("path", a.Path); err != nil {
		return "", err
	}
	f, err := l.inside(a.Path)
	if err != nil {
		return "", err
	}
	if !l.Files.Exists(f) {
		return "", say.Refuse("there is no file %s", say.Quote(a.Path))
	}
	if first := l.Files.First(f); l.Files.Had(first) { // it may have been moved before
		asked, err := l.check.Asks(first)
		if err != nil {
			return "", err
		}
		if !asked {
			if !slices.Contains(l.spared, f) {
				l.spared = append(l.spared, f)
			}
			return "", say.Refuse(
				"the instruction does not ask for %s to be deleted, so it stays; go on without, and name it under not_done if it is in the way", l.Site.Show(f))
		}
	}
	done, left := len(l.Done), len(l.Left)
	if workspace.IsPage(f) {
		if err := (&edit.DeletePage{Page: l.Site.Show(f), Unlink: a.Unlink}).Run(l.Run); err != nil {
			if ref, ok := say.AsRefusal(err); ok {
				return "", say.Refuse("%s", strings.ReplaceAll(ref.Text, "end the instruction with “and unlink it”",
					"say unlink"))
			}
			return "", err
		}
		return l.account(done, left), nil
	}
	if f, err = l.target(a.Path); err != nil {
		return "", err
	}
	if err := l.Files.Remove(f); err != nil {
		return "", err
	}
	l.Tally(f, "page deleted", 1)
	l.Did("Deleted %s", l.Site.Show(f))
	return l.account(done, left), nil
}

func (l *loop) setTodos(_ context.Context, a todosArgs) (string, error) {
	if len(a.Todos) > 50 {
		return "", say.Refuse("a list of todos has at most 50 entries")
	}
	var list []api.Todo
	for i, t := range a.Todos {
		content := say.OneLine(t.Content, 200)
		if content == "" {
			return "", &badArguments{fmt.Sprintf("Todo %d has no content.", i+1)}
		}
		t.Status = cmp.Or(t.Status, "pending")
		if !slices.Contains([]string{"pending", "in_progress", "completed", "cancelled"}, t.Status) {
			return "", &badArguments{fmt.Sprintf("Todo %d: the status is pending, in_progress, completed or cancelled.", i+1)}
		}
		if !slices.Contains([]string{"high", "medium", "low"}, t.Priority) {
			t.Priority = "medium"
		}
		list = append(list, api.Todo{ID: strconv.Itoa(i + 1), Content: content, Status: t.Status, Priority: t.Priority})
	}
	l.todos = list
	l.tell("")
	return "The list is set.", nil
}

func todoList(todos []api.Todo) string {
	var b strings.Builder
	for _, t := range todos {
		fmt.Fprintf(&b, "- [%s] %s\n", t.Status, t.Content)
	}
	return b.String()
}

func (l *loop) checkTool(ctx context.Context) (string, error) {
	l.tell("Checking")
	changes, err := l.Files.Changes()
	if err != nil {
		return "", err
	}
	if len(changes) == 0 {
		return "Nothing is changed yet.", nil
	}
	faults, _, err := l.faults(ctx, changes)
	if err != nil {
		return "", err
	}
	if len(faults) == 0 {
		return "No problems.", nil
	}
	return faultList(faults), nil
}

func faultList(faults []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:\n", say.Count(len(faults), "problem"))
	bullets(&b, faults, 30, func(f string) string { return f })
	return say.Middle(b.String(), maxOutput)
}

// faults looks for what the edits would break: with the built-in checks, and when these agree with the operator's
// command.
func (l *loop) faults(ctx context.Context, changes []Change) (faults, checked []string, err error) {
	if faults, checked, err = l.check.Problems(changes); err != nil || len(faults) > 0 {
		return faults, checked, err
	}
	if l.opts.Checks == nil {
		return nil, checked, nil
	}
	if now := l.Files.State(); l.answerOf != now {
		l.tell("Running the project's check")
		ctx, span := tracing.Start(ctx, "run the project's check")
		l.answer, l.passed, err = check.RunChecks(ctx, l.opts.Checks, l.task.Project, l.Files)
		span.Bool("docent.passed", l.answer == "")
		span.Done(err)
		if err != nil {
			return nil, nil, notRun(err)
		}
		l.answerOf = now
	}
	if l.printed = l.answer != ""; l.printed {
		return []string{l.answer}, checked, nil
	}
	if l.passed != "" {
		checked = append(checked, l.passed)
	}
	return nil, checked, nil
}

// failedChecks is the end of an instruction whose result the checks never agreed to. What the project's own check printed
// stands apart: code of the repository may have run there, and not everybody who sees the job may see what that found.
func (l *loop) failedChecks(faults []string) error {
	what, output := say.OneLine(strings.Join(faults, "; "), 1000), ""
	if l.printed {
		what, output = check.Fails, strings.Join(faults, "\n")
	}
	err := l.ends("The result still failed the checks after %s: %s.", say.Count(l.limits.Repairs, "repair"), what)
	if f, ok := errors.AsType[*Failure](err); ok {
		f.Output = output
	}
	return err
}

// notRun is the end of an instruction whose check could not be run.
func notRun(err error) error {
	var n *check.NotRunError
	if !errors.As(err, &n) {
		return err
	}
	return &Failure{Reason: api.HaltError, Message: fmt.Sprintf(
		"The project's own check could not be run (%v). Nothing was published.", n.Err), Output: n.Output, Err: err}
}

func runFinish(l *loop, ctx context.Context, text string) (string, bool, *Result, error) {
	a, err := arguments[finishArgs](text)
	if err != nil {
		return "", true, nil, err
	}
	if err := needs("summary", a.Summary); err != nil {
		return "", true, nil, err
	}
	return l.finish(ctx, a)
}

// finish ends the work when the checks agree and the model has seen its whole diff.
func (l *loop) finish(ctx context.Context, a finishArgs) (string, bool, *Result, error) {
	for _, s := range append([]string{a.Summary, a.Title}, a.NotDone...) {
		if what := check.SecretIn(s, l.task.Prompt); what != "" {
			return "", true, nil, say.Refuse("the summary holds %s; leave it out", what)
		}
	}
	changes, err := l.Files.Changes()
	if err != nil {
		return "", true, nil, err
	}
	if len(changes) == 0 {
		res := l.unchanged(a)
		return "", false, &res, nil
	}
	l.tell("Checking")
	faults, checked, err := l.faults(ctx, changes)
	if err != nil {
		return "", true, nil, err
	}
	if len(faults) > 0 {
		if l.repairs++; l.repairs > l.limits.Repairs {
			return "", true, nil, l.failedChecks(faults)
		}
		l.tell(fmt.Sprintf("The check found %s; repairing", say.Count(len(faults), "problem")))
		return "It is not finished: the check found " + faultList(faults) +
			"\nRepair this and call finish again. The work ends without a result when it fails " +
			say.Count(l.limits.Repairs-l.repairs+1, "more time") + ".", true, nil, nil
	}
	if now := l.Files.State(); l.reviewed != now {
		l.reviewed = now
		return l.review(changes), false, nil, nil
	}
	for _, f := range l.unlisted(changes) {
		l.Kept("%s is in no navigation", l.Site.Show(f))
	}
	if err := l.compare(changes); err != nil {
		return "", true, nil, err
	}
	res := l.result(a, changes, checked)
	return "", false, &res, nil
}

// review shows the whole diff once, for a last look.
func (l *loop) review(changes []Change) string {
	var b strings.Builder
	b.WriteString("The checks agree. This is the whole diff; look at it as a reviewer would: does it do what the instruction asks, all of it, and nothing else? Is every fact in it known? Repair what is wrong; if it is right, call finish again.\n")
	for _, t := range l.todos {
		if t.Status == "pending" || t.Status == "in_progress" {
			b.WriteString("\nThe list of todos still has open entries:\n" + todoList(l.todos))
			break
		}
	}
	for _, f := range l.unlisted(changes) {
		fmt.Fprintf(&b, "\n%s is in no navigation: %s\n", l.Site.Show(f), l.navHint())
	}
	b.WriteString("\n" + l.diff(changes, maxResults/2))
	return b.String()
}

// unlisted are new pages that are in no navigation.
func (l *loop) unlisted(changes []Change) (out []string) {
	for _, c := range changes {
		if !c.Delete && c.From == "" && workspace.IsPage(c.Path) && !l.Files.Had(c.Path) && !l.listed(c.Path) {
			out = append(out, c.Path)
		}
	}
	return out
}

// diff writes the changes as a unified diff, each file bounded.
func (l *loop) diff(changes []Change, most int) string {
	var b strings.Builder
	moved := workspace.Moved(changes)
	share := max(most/max(len(changes), 1), 1500)
	for i, c := range changes {
		if b.Len() > most {
			fmt.Fprintf(&b, "[%s more changed]\n", say.Count(len(changes)-i, "file"))
			break
		}
		if c.Delete {
			if !moved[c.Path] {
				fmt.Fprintf(&b, "--- %s\nThe file is deleted.\n", l.Site.Show(c.Path))
			}
			continue
		}
		from := c.Path
		if c.From != "" {
			from = c.From
			fmt.Fprintf(&b, "%s is moved to %s.\n", l.Site.Show(from), l.Site.Show(c.Path))
		}
		var old []byte
		if l.Files.Had(from) {
			if o, err := l.Files.Original(from); err == nil {
				old = o
			}
		}
		name := l.Site.Show(c.Path)
		b.WriteString(say.Middle(say.Visible(udiff.Unified("a/"+l.Site.Show(from), "b/"+name, string(old),
			string(c.Content))), share))
	}
	return b.String()
}

// unchanged is the result of work that changes nothing.
func (l *loop) unchanged(a finishArgs) Result {
	message := say.Middle(tidy(a.Summary), 4000)
	for _, n := range a.NotDone {
		message += "\n- " + say.OneLine(n, 300)
	}
	spared := l.notDeleted()
	message += "\n\nNothing was changed." + spared
	outcome := api.OutcomeNothingToDo
	// it says what it lacks, or asks
	if spared != "" || len(a.NotDone) > 0 || strings.HasSuffix(strings.TrimSpace(a.Summary), "?") {
		outcome = api.OutcomeNeedsDetail
	}
	return Result{Model: l.model, Message: message, Todos: l.closed(), Outcome: outcome}
}

// notDeleted tells the user which deletions the model was refused.
func (l *loop) notDeleted() string {
	var names []string
	for _, f := range l.spared {
		if l.Files.Exists(f) {
			names = append(names, l.Site.Show(f))
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return fmt.Sprintf("\n\nThe model wanted to delete %s, which the instruction does not ask for: %s. They were left. To delete a page, name it, for instance “delete page %s”.",
		say.Count(len(names), "file"), say.List(names), names[0])
}

// closed is the list of todos at the end.
func (l *loop) closed() []api.Todo {
	todos := slices.Clone(l.todos)
	for i := range todos {
		switch todos[i].Status {
		case "pending":
			todos[i].Status = "cancelled"
		case "in_progress":
			todos[i].Status = "completed"
		}
	}
	return todos
}

// result writes the report from the model's words and from what the files themselves show.
func (l *loop) result(a finishArgs, changes []Change, checked []string) Result {
	r := l.work
	r.Done = nil
	for line := range strings.Lines(tidy(a.Summary)) {
		line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "-*•# "))
		if line != "" && len(r.Done) < 40 {
			r.Done = append(r.Done, strings.TrimSuffix(line, "."))
		}
	}
	if len(r.Done) == 0 {
		r.Done = []string{"Edited the documentation"}
	}
	for _, n := range a.NotDone {
		if n = say.OneLine(n, 500); n != "" {
			r.Kept("Not done: %s", strings.TrimSuffix(n, "."))
		}
	}
	title := say.OneLine(a.Title, 100)
	if title == "" {
		title = say.OneLine(r.Done[0], 100)
	}
	if head, rest, ok := strings.Cut(title, ": "); ok && strings.EqualFold(head, "docs") {
		title = rest
	}
	r.Titles = []string{say.LowerFirst(title)}
	res := r.report(changes, checked, l.closed())
	res.Message = say.Middle(tidy(a.Summary), 4000)
	for _, n := range r.Left {
		res.Message += "\n- " + n
	}
	res.Message += l.notDeleted()
	return res
}

// tidy takes what cannot be shown out of words of several lines.
func tidy(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		if say.Unseen(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, s))
}
