package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"docent/api"
	"docent/markup"
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

// arguments reads the arguments of a call as strictly as is of use: what is missing or of another kind is told in words.
func arguments[A any](text string) (A, error) {
	var a A
	text = strings.TrimSpace(text)
	if text == "" {
		text = "{}"
	}
	if t, ok := strings.CutPrefix(text, "```json"); ok { // some models fence what they write
		text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(t), "```"))
	}
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) {
			return a, &badArguments{fmt.Sprintf("The argument %s must be %s, not %s.", quote(kind.Field), jsonKind(kind.Type.Kind().String()), kind.Value)}
		}
		return a, &badArguments{"The arguments are no valid JSON object: " + oneLine(err.Error(), 200) + ". Send the call again."}
	}
	return a, nil
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
		return &badArguments{"The argument " + quote(name) + " is missing."}
	}
	return nil
}

// on makes a tool of a function that only gives text.
func on[A any](do func(l *loop, ctx context.Context, a A) (string, error)) func(*loop, context.Context, string) (string, bool, *Result, error) {
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
	editArgs struct {
		Path string `json:"path"`
		Old  string `json:"old_text"`
		New  string `json:"new_text"`
		All  bool   `json:"all"`
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

var todosSchema = json.RawMessage(`{"type":"object","required":["todos"],"properties":{"todos":{"type":"array","description":"the whole list, in order","items":{"type":"object","required":["content","status"],"properties":{"content":{"type":"string"},"status":{"type":"string","enum":["pending","in_progress","completed","cancelled"]},"priority":{"type":"string","enum":["high","medium","low"]}}}}}}`)

var allTools []tool

func init() {
	allTools = []tool{
		{Tool{"search_docs", "Search the documentation by meaning and words. Gives the best sections with their pages. The index holds the pages as they were before your edits.",
			object("!query", "string", "what to look for, in a few words", "limit", "integer", "how many sections; 5 if left out, at most 10")}, true, on((*loop).search)},
		{Tool{"list_files", "List the files of the documentation, with their sizes in bytes.",
			object("path", "string", "a folder; the whole documentation if left out", "glob", "string", "only names like this: **/*.mdx")}, true, on((*loop).list)},
		{Tool{"read_file", "Read a file, or a range of its lines. Each line is shown with its number and a tab before it, which are not part of the file.",
			object("!path", "string", "the file", "from_line", "integer", "first line, from 1", "to_line", "integer", "last line")}, false, on((*loop).readFile)},
		{Tool{"grep", "Find lines that contain a text, or match a regular expression (RE2), in all files or below a path.",
			object("!pattern", "string", "what to find", "path", "string", "a file, a folder or a glob; everything if left out", "regex", "boolean", "the pattern is a regular expression", "ignore_case", "boolean", "upper and lower case are the same")}, true, on((*loop).grep)},
		{Tool{"edit_file", "Replace a text in a file that you have read. The old text must occur exactly once, unless all is true. Copy it exactly, with its line breaks and blanks, without line numbers.",
			object("!path", "string", "the file", "!old_text", "string", "what stands there now", "!new_text", "string", "what shall stand there; empty to delete", "all", "boolean", "replace every occurrence")}, false, on((*loop).editFile)},
		{Tool{"write_file", "Create a new file with the whole of its content, front matter included. With overwrite it replaces a file that you have read.",
			object("!path", "string", "the file", "!content", "string", "all of it", "group", "string", "group of the navigation that lists a new page", "overwrite", "boolean", "replace an existing file")}, false, on((*loop).writeFile)},
		{Tool{"move_file", "Move or rename a page. Links to it and in it, the navigation and redirects follow.",
			object("!from", "string", "the page", "!to", "string", "its new path")}, false, on((*loop).moveFile)},
		{Tool{"delete_file", "Delete a file that the instruction names, or asks in words to delete. A page that others link to is only deleted with unlink, which turns these links into text.",
			object("!path", "string", "the file", "unlink", "boolean", "turn links to it into text")}, false, on((*loop).deleteFile)},
		{Tool{"check", "Check what you have changed: front matter, Markdown and MDX, links and anchors, images, navigation, secrets. Only problems that your edits bring are shown.",
			object()}, true, on(func(l *loop, ctx context.Context, _ struct{}) (string, error) { return l.checkTool(ctx) })},
		{Tool{"set_todos", "Set the list of things to do, which the user sees.", todosSchema}, false, on((*loop).setTodos)},
		{Tool{"finish", "Say that the work is done, or cannot be done. The edits are checked first, and you are shown the whole diff once.",
			object("!summary", "string", "what you did and why, for the reviewer: a few short sentences or a list", "title", "string", "title of the pull request, at most 70 characters", "not_done", "array of string", "what was asked and is not done, and why")}, true, runFinish},
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

// offers tells whether a tool can work here.
func (l *loop) offers(t tool) bool { return t.Name != "search_docs" || l.opts.Searcher != nil }

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
	l.tell("Searching for " + quote(a.Query))
	if a.Limit <= 0 {
		a.Limit = 5
	}
	found, err := l.opts.Searcher.Search(ctx, string(l.task.Project.ID), middle(a.Query, 500), min(a.Limit, 10))
	if err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", refuse("the search does not work now (%s); use grep", oneLine(err.Error(), 200))
	}
	if len(found) == 0 {
		return "Nothing was found. Try other words, or grep.", nil
	}
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, "%s — %s\n%s\n", oneLine(f.Path, 300), oneLine(f.Heading, 200), quoteBlockOf(middle(visible(f.Text), 1500)))
	}
	return middle(b.String(), maxOutput), nil
}

func (l *loop) list(_ context.Context, a listArgs) (string, error) {
	return l.listing(a.Path, a.Glob, maxOutput)
}

// inside settles what a path of the model means: below the documentation folder, however it was written.
func (l *loop) inside(p string) (string, error) {
	name := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(p), "./"), "/"), "/")
	if name == "" || name == "." {
		return l.ws.docsDir, nil
	}
	if err := cleanPath(name); err != nil {
		return "", err
	}
	full := path.Join(l.ws.docsDir, name)
	if !l.ws.there(full) && (name == l.ws.docsDir || l.ws.inDocs(name)) {
		full = name
	}
	if full != l.ws.docsDir && !l.ws.inDocs(full) {
		return "", refuse("%s lies outside the documentation folder", quote(p))
	}
	return full, nil
}

// shown lists the files that a model may see: those of the documentation, but for what begins with a dot and packages.
func (l *loop) shown() []string {
	var out []string
	for _, f := range l.ws.files() {
		if l.ws.inDocs(f) && cleanPath(f) == nil && !private(l.site.show(f)) {
			out = append(out, f)
		}
	}
	return out
}

// private tells names that may hold what is nobody's business.
func private(p string) bool {
	for _, seg := range strings.Split(p, "/") {
		if strings.HasPrefix(seg, ".") || strings.EqualFold(seg, "node_modules") {
			return true
		}
	}
	return false
}

// listing names files, and only counts them folder by folder where they are too many.
func (l *loop) listing(dir, glob string, most int) (string, error) {
	at, err := l.inside(dir)
	if err != nil {
		return "", err
	}
	var files []string
	for _, f := range l.shown() {
		if at != "" && f != at && !strings.HasPrefix(f, at+"/") {
			continue
		}
		if glob != "" && !globbed(glob, l.site.show(f)) && !globbed(glob, strings.TrimPrefix(f, at+"/")) {
			continue
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		if dir != "" && !l.ws.there(at) {
			return "", refuse("there is no folder %s", quote(dir))
		}
		return "There are no such files.", nil
	}
	var b strings.Builder
	for _, f := range files {
		fmt.Fprintf(&b, "%s (%d)\n", l.site.show(f), l.ws.size(f))
	}
	if b.Len() <= most {
		return b.String(), nil
	}
	counts := map[string]int{}
	for _, f := range files {
		counts[path.Dir(l.site.show(f))]++
	}
	b.Reset()
	fmt.Fprintf(&b, "%d files, too many to show; by folder:\n", len(files))
	for _, d := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&b, "%s/ (%s)\n", d, count(counts[d], "file"))
	}
	b.WriteString("Name a folder or a glob to see its files.")
	return middle(b.String(), most), nil
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
	if private(l.site.show(f)) {
		return "", nil, refuse("%s is not shown: names that begin with a dot and installed packages are left alone", quote(p))
	}
	if !l.ws.exists(f) {
		if l.ws.isDir(f) {
			return "", nil, refuse("%s is a folder; list_files shows what is in it", quote(p))
		}
		if near, err := l.site.find(p); err == nil && !private(l.site.show(near)) {
			if l.ws.exists(near) && near != f {
				return "", nil, refuse("there is no file %s; did you mean %s?", quote(p), l.site.show(near))
			}
		}
		return "", nil, refuse("there is no file %s; list_files shows what there is", quote(p))
	}
	b, err := l.ws.read(f)
	if err != nil {
		return "", nil, err
	}
	if !isText(b) {
		return "", nil, refuse("%s is not text in UTF-8", quote(p))
	}
	return f, b, nil
}

func lines(b []byte) []string {
	out := strings.Split(string(b), "\n")
	if n := len(out); n > 1 && out[n-1] == "" {
		out = out[:n-1]
	}
	for i := range out {
		out[i] = strings.TrimSuffix(out[i], "\r")
	}
	return out
}

func numbered(b *strings.Builder, all []string, from, to int) {
	for i := from; i <= to && i <= len(all); i++ {
		line := visible(strings.TrimPrefix(all[i-1], "\ufeff"))
		if len(line) > 2000 {
			line = strings.ToValidUTF8(line[:2000], "") + fmt.Sprintf(" [… %d characters more]", len(line)-2000)
		}
		fmt.Fprintf(b, "%6d\t%s\n", i, line)
	}
}

func (l *loop) readFile(_ context.Context, a readArgs) (string, error) {
	f, src, err := l.text(a.Path)
	if err != nil {
		return "", err
	}
	l.read[f] = true
	if l.replay {
		return "", nil
	}
	l.tell("Reading " + l.site.show(f))
	all := lines(src)
	from, to := max(a.From, 1), a.To
	if to <= 0 || to > len(all) {
		to = len(all)
	}
	if len(src) == 0 {
		return l.site.show(f) + " is empty.", nil
	}
	if from > to {
		return "", refuse("%s has %s; there is nothing from line %d to line %d", l.site.show(f), count(len(all), "line"), from, a.To)
	}
	var b strings.Builder
	last := from - 1
	for last < to && b.Len() < maxOutput {
		last++
		numbered(&b, all, last, last)
	}
	head := fmt.Sprintf("%s, lines %d to %d of %d:\n", l.site.show(f), from, last, len(all))
	tail := ""
	if last < to {
		tail = fmt.Sprintf("[%d more lines; go on with from_line %d]", to-last, last+1)
	}
	return head + b.String() + tail, nil
}

func (l *loop) grep(ctx context.Context, a grepArgs) (string, error) {
	if a.Pattern == "" {
		return "", needs("pattern", "")
	}
	expr := a.Pattern
	if !a.Regex {
		expr = regexp.QuoteMeta(a.Pattern)
	}
	if a.IgnoreCase {
		expr = "(?i)" + expr
	}
	if len(expr) > 2000 {
		return "", refuse("the pattern is longer than 2000 characters")
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return "", refuse("the pattern is no regular expression: %s", oneLine(err.Error(), 200))
	}
	l.tell("Looking for " + quote(a.Pattern))
	dir, glob := a.Path, ""
	if strings.ContainsAny(a.Path, "*?[{") {
		dir, glob = "", strings.TrimPrefix(a.Path, "./")
	}
	at, err := l.inside(dir)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	hits, files, skipped := 0, 0, 0
	const most = 100
	for _, f := range l.shown() {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		if at != "" && f != at && !strings.HasPrefix(f, at+"/") || glob != "" && !globbed(glob, l.site.show(f)) {
			continue
		}
		if !isPage(f) && !textExts[strings.ToLower(path.Ext(f))] {
			continue
		}
		src, err := l.ws.read(f)
		if err != nil || !isText(src) {
			skipped++
			continue
		}
		if !re.Match(src) && !a.Regex {
			continue
		}
		in := 0
		for i, line := range lines(src) {
			if !re.MatchString(line) {
				continue
			}
			in++
			if hits++; hits > most || b.Len() > maxOutput-500 {
				continue
			}
			fmt.Fprintf(&b, "%s:%d: %s\n", l.site.show(f), i+1, around(visible(line), re))
		}
		if in > 0 {
			files++
		}
	}
	if hits == 0 {
		return "No line matches." + func() string {
			if skipped > 0 {
				return fmt.Sprintf(" (%s could not be read as text.)", count(skipped, "file"))
			}
			return ""
		}(), nil
	}
	out := fmt.Sprintf("%s in %s:\n", count(hits, "line"), count(files, "file")) + b.String()
	if shown := strings.Count(b.String(), "\n"); shown < hits {
		out += fmt.Sprintf("[%d more; name a path or a narrower pattern]", hits-shown)
	}
	return out, nil
}

// around shows the part of a long line where the match is.
func around(line string, re *regexp.Regexp) string {
	const most = 300
	if len(line) <= most {
		return line
	}
	at := re.FindStringIndex(line)
	start := 0
	if at != nil {
		start = max(at[0]-most/3, 0)
	}
	end := min(start+most, len(line))
	return "…" + strings.ToValidUTF8(line[start:end], "") + "…"
}

// target settles which file is written, and refuses kinds of files that are no documentation.
func (l *loop) target(p string) (string, error) {
	if err := needs("path", p); err != nil {
		return "", err
	}
	if strings.HasSuffix(strings.TrimSpace(p), "/") {
		return "", refuse("%s is a folder", quote(p))
	}
	f, err := l.inside(p)
	if err != nil {
		return "", err
	}
	if err := l.ws.writable(f); err != nil {
		return "", err
	}
	if !textExts[strings.ToLower(path.Ext(f))] {
		return "", refuse("files like %s are not written; the documentation's are Markdown, MDX, JSON, YAML, TOML, text, HTML, CSS, SVG and scripts of components", quote(path.Base(f)))
	}
	if steering(f) {
		return "", refuse("%s steers how the site is built or what runs in it; that is left to people", quote(path.Base(f)))
	}
	return f, nil
}

func (l *loop) writeFile(_ context.Context, a writeArgs) (string, error) {
	f, err := l.target(a.Path)
	if err != nil {
		return "", err
	}
	content := a.Content
	show := l.site.show(f)
	if l.ws.exists(f) {
		if !a.Overwrite {
			return "", refuse("%s exists already; change it with edit_file, or say overwrite", show)
		}
		if !l.read[f] {
			return "", refuse("%s has not been read; read_file it before you replace it", show)
		}
		old, err := l.ws.read(f)
		if err != nil {
			return "", err
		}
		if eolOf(old) == "\r\n" {
			content = strings.ReplaceAll(strings.ReplaceAll(content, "\r\n", "\n"), "\n", "\r\n")
		}
		if bytes.HasPrefix(old, []byte("\ufeff")) && !strings.HasPrefix(content, "\ufeff") {
			content = "\ufeff" + content
		}
		if string(old) == content {
			return "", refuse("%s has this content already", show)
		}
		if err := l.ws.write(f, []byte(content)); err != nil {
			return "", err
		}
		l.tally(f, "page rewritten", 1)
		l.tell("Rewrote " + show)
		return fmt.Sprintf("%s is replaced; it has %s.", show, count(len(lines([]byte(content))), "line")) + l.lint(f), nil
	}
	if isPage(f) {
		for _, ext := range []string{".md", ".mdx", ".markdown"} {
			if other := stem(f) + ext; other != f && l.ws.exists(other) {
				return "", refuse("%s exists already and has the same address", l.site.show(other))
			}
		}
	}
	if content != "" && !strings.HasSuffix(content, "\n") {
		content += "\n"
	}
	if err := l.ws.write(f, []byte(content)); err != nil {
		return "", err
	}
	l.read[f] = true
	l.tally(f, "page created", 1)
	l.tell("Wrote " + show)
	text := fmt.Sprintf("%s is created; it has %s.", show, count(len(lines([]byte(content))), "line"))
	if isPage(f) {
		p, err := l.site.page(f)
		if err != nil {
			return "", err
		}
		before := len(l.left)
		if err := l.listPage(f, p.Title(), a.Group); err != nil {
			var ref *refusal
			if errors.As(err, &ref) {
				return "", refuse("the page was not created: %s", ref.text)
			}
			return "", err
		}
		l.left = l.left[:before]
		if nav, err := l.site.navigation(); err == nil && nav != nil {
			if l.listed(f) {
				text += " It is listed in the navigation."
			} else {
				text += " It is in no navigation yet: " + l.navHint()
			}
		} else if l.site.generated() {
			text += " The navigation was not edited: " + l.site.navWhy() + "."
		}
	}
	return text + l.lint(f), nil
}

func (l *loop) navHint() string {
	if nav, err := l.site.navigation(); err == nil && nav != nil {
		return "add it to " + l.site.show(nav.file) + ", or readers will not find it."
	}
	return l.site.navWhy() + "."
}

// listed tells whether readers find a page in the navigation, where there is one to look at.
func (l *loop) listed(f string) bool {
	nav, err := l.site.navigation()
	if err != nil || nav == nil {
		return true
	}
	pages, err := nav.pages()
	return err != nil || slices.Contains(pages, f)
}

// lint tells at once what an edit has broken within a page.
func (l *loop) lint(f string) string {
	src, err := l.ws.read(f)
	if err != nil {
		return ""
	}
	old, _ := l.ws.original(l.ws.first(f))
	if !isPage(f) {
		if why := unreadable(f, src); why != "" && (old == nil || unreadable(f, old) == "") {
			return "\nIt does not parse any more: " + why
		}
		return ""
	}
	before := map[string]int{}
	if old != nil {
		for _, p := range markup.Parse(f, old).Problems {
			before[p.Message]++
		}
	}
	var b strings.Builder
	for _, p := range markup.Parse(f, src).Problems {
		if before[p.Message]--; before[p.Message] < 0 && b.Len() < 1000 {
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
	if !l.ws.exists(from) {
		return "", refuse("there is no file %s", quote(a.From))
	}
	if _, err := l.inside(a.To); err != nil {
		return "", err
	}
	done, left := len(l.done), len(l.left)
	if err := (&moveOp{from: l.site.show(from), to: a.To}).run(l.run); err != nil {
		return "", err
	}
	for now, was := range l.origin {
		if l.read[from] && (was == from || l.ws.first(now) == from) {
			l.read[now] = true
		}
	}
	return l.account(done, left), nil
}

// account tells what an operation of the built-in instructions did. The words go into the result, not into the report:
// that is the model's.
func (l *loop) account(done, left int) string {
	text := strings.Join(append(slices.Clone(l.done[done:]), l.left[left:]...), ". ") + "."
	l.tell(oneLine(text, 300))
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
	if !l.ws.exists(f) {
		return "", refuse("there is no file %s", quote(a.Path))
	}
	if first := l.ws.first(f); l.ws.had(first) { // it may have been moved before
		asked, err := l.check.asks(first)
		if err != nil {
			return "", err
		}
		if !asked {
			if !slices.Contains(l.spared, f) {
				l.spared = append(l.spared, f)
			}
			return "", refuse("the instruction does not ask for %s to be deleted, so it stays; go on without, and name it under not_done where it is in the way", l.site.show(f))
		}
	}
	done, left := len(l.done), len(l.left)
	if isPage(f) {
		if err := (&deletePageOp{page: l.site.show(f), unlink: a.Unlink}).run(l.run); err != nil {
			var ref *refusal
			if errors.As(err, &ref) {
				return "", refuse("%s", strings.ReplaceAll(ref.text, "end the instruction with “and unlink it”", "say unlink"))
			}
			return "", err
		}
		return l.account(done, left), nil
	}
	if f, err = l.target(a.Path); err != nil {
		return "", err
	}
	if err := l.ws.remove(f); err != nil {
		return "", err
	}
	l.tally(f, "page deleted", 1)
	l.did("Deleted %s", l.site.show(f))
	return l.account(done, left), nil
}

func (l *loop) setTodos(_ context.Context, a todosArgs) (string, error) {
	if len(a.Todos) > 50 {
		return "", refuse("a list of todos has at most 50 entries")
	}
	var list []api.Todo
	for i, t := range a.Todos {
		content := oneLine(t.Content, 200)
		if content == "" {
			return "", &badArguments{fmt.Sprintf("Todo %d has no content.", i+1)}
		}
		if t.Status == "" {
			t.Status = "pending"
		}
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
	changes, err := l.ws.changes()
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
	fmt.Fprintf(&b, "%s:\n", count(len(faults), "problem"))
	for i, f := range faults {
		if i == 30 {
			fmt.Fprintf(&b, "- and %d more\n", len(faults)-i)
			break
		}
		b.WriteString("- " + f + "\n")
	}
	return middle(b.String(), maxOutput)
}

// faults looks for what the edits would break: with the built-in checks, and when these agree with the operator's command.
func (l *loop) faults(ctx context.Context, changes []Change) (faults, checked []string, err error) {
	if faults, checked, err = l.check.problems(changes); err != nil || len(faults) > 0 {
		return faults, checked, err
	}
	if l.opts.Checks == nil {
		return nil, checked, nil
	}
	if now := l.ws.state(); l.answerOf != now {
		l.tell("Running the project's check")
		if l.answer, l.passed, err = external(ctx, l.opts.Checks, l.task.Project, l.ws); err != nil {
			return nil, nil, err
		}
		l.answerOf = now
	}
	if l.answer != "" {
		return []string{l.answer}, checked, nil
	}
	if l.passed != "" {
		checked = append(checked, l.passed)
	}
	return nil, checked, nil
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
		if what := secretIn(s, l.task.Prompt); what != "" {
			return "", true, nil, refuse("the summary holds %s; leave it out", what)
		}
	}
	changes, err := l.ws.changes()
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
			return "", true, nil, l.ends("The result still failed the checks after %s: %s.", count(l.limits.Repairs, "repair"), oneLine(strings.Join(faults, "; "), 1000))
		}
		l.tell(fmt.Sprintf("The check found %s; repairing", count(len(faults), "problem")))
		return "It is not finished: the check found " + faultList(faults) + "\nRepair this and call finish again. The work ends without a result when it fails " + count(l.limits.Repairs-l.repairs+1, "more time") + ".", true, nil, nil
	}
	if now := l.ws.state(); l.reviewed != now {
		l.reviewed = now
		return l.review(changes), false, nil, nil
	}
	for _, c := range changes {
		if !c.Delete && c.From == "" && isPage(c.Path) && !l.ws.had(c.Path) && !l.listed(c.Path) {
			l.kept("%s is in no navigation", l.site.show(c.Path))
		}
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
	for _, c := range changes {
		if !c.Delete && c.From == "" && isPage(c.Path) && !l.ws.had(c.Path) && !l.listed(c.Path) {
			fmt.Fprintf(&b, "\n%s is in no navigation: %s\n", l.site.show(c.Path), l.navHint())
		}
	}
	b.WriteString("\n" + l.diff(changes, maxResults/2))
	return b.String()
}

// diff writes the changes as a unified diff, each file bounded.
func (l *loop) diff(changes []Change, most int) string {
	var b strings.Builder
	moved := map[string]bool{}
	for _, c := range changes {
		if c.From != "" {
			moved[c.From] = true
		}
	}
	share := max(most/max(len(changes), 1), 1500)
	for i, c := range changes {
		if b.Len() > most {
			fmt.Fprintf(&b, "[%s more changed]\n", count(len(changes)-i, "file"))
			break
		}
		if c.Delete {
			if !moved[c.Path] {
				fmt.Fprintf(&b, "--- %s\nThe file is deleted.\n", l.site.show(c.Path))
			}
			continue
		}
		from := c.Path
		if c.From != "" {
			from = c.From
			fmt.Fprintf(&b, "%s is moved to %s.\n", l.site.show(from), l.site.show(c.Path))
		}
		var old []byte
		if l.ws.had(from) {
			if o, err := l.ws.original(from); err == nil {
				old = o
			}
		}
		name := l.site.show(c.Path)
		b.WriteString(middle(visible(udiff.Unified("a/"+l.site.show(from), "b/"+name, string(old), string(c.Content))), share))
	}
	return b.String()
}

// unchanged is the result of work that changes nothing.
func (l *loop) unchanged(a finishArgs) Result {
	message := middle(tidy(a.Summary), 4000)
	for _, n := range a.NotDone {
		message += "\n- " + oneLine(n, 300)
	}
	spared := l.notDeleted()
	message += "\n\nNothing was changed." + spared
	outcome := api.OutcomeNothingToDo
	if spared != "" || len(a.NotDone) > 0 || strings.HasSuffix(strings.TrimSpace(a.Summary), "?") { // it says what it lacks, or asks
		outcome = api.OutcomeNeedsDetail
	}
	return Result{Model: l.model, Message: message, Todos: l.closed(), Outcome: outcome}
}

// notDeleted tells the user which deletions the model was refused.
func (l *loop) notDeleted() string {
	var names []string
	for _, f := range l.spared {
		if l.ws.exists(f) {
			names = append(names, l.site.show(f))
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return fmt.Sprintf("\n\nThe model wanted to delete %s, which the instruction does not ask for: %s. They were left. To delete a page, name it, for instance “delete page %s”.",
		count(len(names), "file"), listing(names), names[0])
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
	r.done = nil
	for line := range strings.Lines(tidy(a.Summary)) {
		line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "-*•# "))
		if line != "" && len(r.done) < 40 {
			r.done = append(r.done, strings.TrimSuffix(line, "."))
		}
	}
	if len(r.done) == 0 {
		r.done = []string{"Edited the documentation"}
	}
	for _, n := range a.NotDone {
		if n = oneLine(n, 500); n != "" {
			r.kept("Not done: %s", strings.TrimSuffix(n, "."))
		}
	}
	title := oneLine(a.Title, 100)
	if title == "" {
		title = oneLine(r.done[0], 100)
	}
	if head, rest, ok := strings.Cut(title, ": "); ok && strings.EqualFold(head, "docs") {
		title = rest
	}
	r.titles = []string{lowerFirst(title)}
	res := r.report(changes, checked, l.closed())
	res.Message = middle(tidy(a.Summary), 4000)
	for _, n := range r.left {
		res.Message += "\n- " + n
	}
	res.Message += l.notDeleted()
	return res
}

func lowerFirst(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if next, _ := utf8.DecodeRuneInString(s[n:]); next >= 'A' && next <= 'Z' {
		return s // an abbreviation
	}
	return strings.ToLower(string(r)) + s[n:]
}

// tidy takes what cannot be shown out of words of several lines.
func tidy(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		if unseen(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, s))
}
