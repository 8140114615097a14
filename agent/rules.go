package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"docent/api"
	"docent/formats"
	"docent/markup"
)

// Rules names the built-in agent, which carries out instructions of fixed forms and no others.
const Rules = "rules-1"

type apiFile = api.File

// History is a Tree that also shows other commits of its repository. With it an instruction can be undone.
type History interface {
	Parent(ctx context.Context, commit string) (string, error) // the commit that this one was made on
	FilesAt(ctx context.Context, commit string) ([]api.File, error)
	ReadAt(ctx context.Context, commit, path string) ([]byte, error)
}

// Linked is a Tree that also names what is neither a file nor a folder: symbolic links and submodules. Nothing is written to
// them or below them.
type Linked interface {
	Links(ctx context.Context) ([]string, error)
}

// Options bound what one instruction may do. Zero means the default.
type Options struct {
	MaxFile   int64 // bytes of one file; 2 MiB
	MaxChange int64 // bytes of all changed files together; 32 MiB
	MaxFiles  int   // changed files; 5000

	Models   Models   // nil: instructions of fixed forms alone are understood
	Searcher Searcher // nil: the model has no search
	Checks   Checks   // nil: no command of the operator's looks at results
	Loop     Limits
	Log      *slog.Logger // nil: what goes wrong inside is not logged

	shared *sharedPages
}

// An Agent carries out instructions. It holds no state but pages that runs share: one serves any number of jobs at the same time.
type Agent struct{ opts Options }

// New makes an agent. Without Models it is the built-in one, which needs no language model.
func New(opts Options) *Agent {
	opts.Loop = opts.Loop.withDefaults()
	opts.shared = &sharedPages{}
	if opts.MaxFile <= 0 {
		opts.MaxFile = 2 << 20
	}
	if opts.MaxChange <= 0 {
		opts.MaxChange = 32 << 20
	}
	if opts.MaxFiles <= 0 {
		opts.MaxFiles = 5000
	}
	return &Agent{opts}
}

// A run is one instruction being carried out.
type run struct {
	ctx  context.Context
	ws   *workspace
	site *documentation
	task Task

	done     []string // what was done, a sentence each
	left     []string // what was left, and why
	titles   []string
	counts   map[string]map[string]int // file -> what -> how often
	known    *codeBase                 // what the documentation runs as it stands, once it was looked for
	origin   map[string]string         // file moved -> where it was in the base
	dropped  map[string]bool           // pages taken out of the navigation on request
	replaced []replaced
	bounds   *bounds // of the operation that is carried out
	undone   bool
	whole    []pulledFile    // of the pull request, where it holds earlier instructions too
	meant    map[string]bool // files that built-in instructions delete; nil where a language model works
	wish     *wishes         // what the instruction says about deleting, once it was read
	review   bool            // a person looks at the change before it is on the documentation's branch

	model  string                // that does the work
	before map[string]faultCount // broken links of the base, once they were counted
}

func (r *run) did(format string, args ...any) { r.done = append(r.done, fmt.Sprintf(format, args...)) }
func (r *run) headline(format string, args ...any) {
	r.titles = append(r.titles, fmt.Sprintf(format, args...))
}

func (r *run) kept(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); !slices.Contains(r.left, s) {
		r.left = append(r.left, s)
	}
}

func (r *run) tally(file, what string, n int) {
	if r.counts[file] == nil {
		r.counts[file] = map[string]int{}
	}
	r.counts[file][what] += n
}

// moved carries the account of a file over to its new place.
func (r *run) moved(from, to string) {
	if c := r.counts[from]; c != nil {
		r.counts[to] = c
		delete(r.counts, from)
	}
	first := from
	if o, ok := r.origin[from]; ok {
		first = o
		delete(r.origin, from)
	}
	r.origin[to] = first
}

// Edit carries out one instruction, all of it or nothing: with the language model that the task names, or by the
// instructions of fixed forms where that is the built-in one. What cannot be done, or is not understood, is no error: the
// Result then has no changes and its Message says why. A *Failure says why a language model came to no result; any other
// error means that the tree could not be read or that ctx ended.
func (a *Agent) Edit(ctx context.Context, task Task, progress func(Progress)) (Result, error) {
	if progress == nil {
		progress = func(Progress) {}
	}
	if a.opts.Models != nil {
		m, err := a.opts.Models.LanguageModel(task.Model)
		if err != nil {
			return Result{}, &Failure{api.HaltError, fmt.Sprintf("The language model %s cannot be used: it is not configured.", quote(task.Model)), err}
		}
		if m != nil {
			return a.loop(ctx, m, task, progress)
		}
	}
	return a.rules(ctx, task, progress)
}

// Model is what a task with that model's name will say of which one worked, as far as is known before it does.
func (a *Agent) Model(name string) string {
	if a.opts.Models == nil {
		return Rules
	}
	switch m, err := a.opts.Models.LanguageModel(name); {
	case err != nil:
		return name // the task will fail, and say so
	case m != nil:
		return m.Name()
	}
	return Rules
}

func newRun(ctx context.Context, ws *workspace, task Task, model string) (*run, error) {
	r := &run{ctx: ctx, ws: ws, task: task, counts: map[string]map[string]int{}, origin: map[string]string{}, dropped: map[string]bool{}, model: model}
	var err error
	r.site, err = openDocumentation(ws, task.Project, task.Now)
	return r, err
}

// rules carries out instructions of fixed forms.
func (a *Agent) rules(ctx context.Context, task Task, progress func(Progress)) (Result, error) {
	var ws *workspace
	var r *run
	open := func() (*documentation, error) {
		if r != nil {
			return r.site, nil
		}
		var err error
		if ws, err = newWorkspace(ctx, task, a.opts); err == nil {
			r, err = newRun(ctx, ws, task, Rules)
		}
		if err != nil {
			return nil, err
		}
		return r.site, nil
	}
	names := &pages{open: open}
	m := &memory{guide: names}
	for _, e := range task.Earlier {
		if e.Commit == "" {
			continue // it changed nothing, so nothing follows from it
		}
		then := *m
		if _, err := parse(e.Prompt, &then); err == nil {
			*m = then
		}
	}
	ops, err := parse(task.Prompt, m)
	if names.err != nil {
		return Result{}, names.err
	}
	if err != nil {
		var mis *misunderstanding
		if errors.As(err, &mis) {
			return mis.result(), nil
		}
		return Result{}, err
	}
	read := &parser{toks: lex(task.Prompt)}
	for _, said := range m.context {
		if !slices.ContainsFunc(ops, func(op operation) bool { return !read.placed(op) }) {
			break
		}
		if page := names.mentioned(said); page != "" {
			return (&misunderstanding{part: said, detail: true, why: fmt.Sprintf("it may say where, since there is the page %s, or why. Say “in %s” in the instruction where that is meant, or leave the sentence out", page, page)}).result(), nil
		}
	}
	todos := make([]api.Todo, len(ops))
	for i, op := range ops {
		todos[i] = api.Todo{ID: strconv.Itoa(i + 1), Content: oneLine(op.todo(), 200), Status: "pending", Priority: "medium"}
	}
	tell := func(text string) {
		progress(Progress{Title: todos[0].Content, Todos: slices.Clone(todos), Text: text})
	}
	tell(fmt.Sprintf("Understood %s", count(len(ops), "operation")))

	if _, err := open(); err != nil {
		return Result{}, err
	}
	r.meant = map[string]bool{}
	for _, said := range m.context {
		r.kept("Taken as context and not as an instruction: %s", quote(said))
	}
	stop := func(i int, err error) (Result, error) {
		if ctx.Err() != nil {
			return Result{}, ctx.Err()
		}
		var ref *refusal
		if !errors.As(err, &ref) {
			return Result{}, err
		}
		for k := range todos {
			if k >= i {
				todos[k].Status = "cancelled"
			} else {
				todos[k].Status = "pending" // undone: all or nothing
			}
		}
		res := nothing("Nothing was changed: "+ref.text+".", api.OutcomeNeedsDetail)
		if ref.idle && len(ops) == 1 {
			res.Outcome = api.OutcomeNothingToDo
		}
		if len(ops) > 1 && i < len(ops) {
			res.Message = fmt.Sprintf("Nothing was changed, as one part cannot be done (%s): %s.", ops[i].todo(), ref.text)
		}
		for k := range todos {
			todos[k].Status = "cancelled"
		}
		res.Todos = todos
		return res, nil
	}
	for i, op := range ops {
		if err := ctx.Err(); err != nil {
			return Result{}, err
		}
		todos[i].Status = "in_progress"
		tell(todos[i].Content)
		before := len(r.done)
		r.replaced = nil
		if err := r.confined(op); err != nil {
			return stop(i, err)
		}
		todos[i].Status = "completed"
		tell(strings.Join(r.done[before:], ". "))
	}
	tell("Checking")
	changes, err := ws.changes()
	if err != nil {
		return stop(len(ops), err)
	}
	if len(changes) == 0 {
		return nothing("Nothing was changed: the pages are as the instruction asks already.", api.OutcomeNothingToDo), nil
	}
	checked, err := r.check(changes)
	if err != nil {
		return stop(len(ops), err)
	}
	if err := r.compare(changes); err != nil {
		return Result{}, err
	}
	return r.report(changes, checked, todos), nil
}

func nothing(message string, outcome api.Outcome) Result {
	return Result{Model: Rules, Message: message, Outcome: outcome}
}

// result tells the user what was not understood, and what to say instead.
func (e *misunderstanding) result() Result {
	text := e.Error() + " Nothing was changed"
	if e.others {
		text += ", also not by the other parts: a prompt is carried out whole or not at all"
	}
	text += "."
	if e.nearest != "" {
		text += "\n\nThe nearest instruction that I know: " + e.nearest
		var fill []string
		if strings.Contains(e.nearest, "PAGE") {
			fill = append(fill, "the path of a page for PAGE")
		}
		if strings.Contains(e.nearest, "…") {
			fill = append(fill, "your words for …")
		}
		if len(fill) > 0 {
			text += "\n(Put " + strings.Join(fill, ", and ") + ".)"
		}
	}
	outcome := api.OutcomeNotUnderstood
	if e.detail {
		outcome = api.OutcomeNeedsDetail
	}
	return nothing(text+"\n\nI work without a language model and carry out instructions of fixed forms. “docent job create --help” lists them, and so does the page agent/instructions of Docent's documentation.", outcome)
}

// check refuses changes that would break something.
func (r *run) check(changes []Change) ([]string, error) {
	faults, checked, err := r.problems(changes)
	if err != nil {
		return nil, err
	}
	if len(faults) > 0 {
		more := ""
		if len(faults) > 10 {
			more = fmt.Sprintf("; and %d more", len(faults)-10)
			faults = faults[:10]
		}
		return nil, refuse("the check of the result failed: %s%s", strings.Join(faults, "; "), more)
	}
	return checked, nil
}

// problems looks for what the changes would break, and says what it looked at. Only new problems count.
func (r *run) problems(changes []Change) (faults, checked []string, err error) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }

	was, err := r.base()
	if err != nil {
		return nil, nil, err
	}
	base := was.ws

	for _, c := range changes {
		if c.Delete {
			continue
		}
		from := c.Path
		if c.From != "" {
			from = c.From
		}
		var old []byte
		if _, ok := base.base[from]; ok {
			b, err := base.original(from)
			if err != nil {
				return nil, nil, err
			}
			old = b
		}
		if !r.undone {
			if what := secretIn(string(c.Content), string(old)); what != "" {
				fault("%s would hold %s", r.site.show(c.Path), what)
			}
			if n := strings.Count(hiddenOf(string(c.Content)), "") - strings.Count(hiddenOf(string(old)), ""); n > 0 {
				fault("%s would hold characters that a reader does not see", r.site.show(c.Path))
			}
		}
		if !r.undone {
			if key := steeringChange(c.Path, old, c.Content); key != "" {
				fault("%s would change %s, which says what the site's build runs: that is left to people", r.site.show(c.Path), quote(key))
			}
		}
		if !isPage(c.Path) {
			if why := unreadable(c.Path, c.Content); why != "" && (old == nil || unreadable(from, old) == "") {
				fault("%s would not parse: %s", r.site.show(c.Path), why)
			}
			continue
		}
		now, err := r.site.page(c.Path)
		if err != nil {
			return nil, nil, err
		}
		// Most pages run nothing that would have to be there already: only for others is the whole documentation looked at.
		if !r.undone && r.site.newCode(now, codeBase{}) != "" {
			if r.known == nil {
				known, err := was.codeBase()
				if err != nil {
					return nil, nil, err
				}
				r.known = &known
			}
			if what := r.site.newCode(now, *r.known); what != "" {
				fault("%s would hold %s, which runs when the site is built: that is left to people", r.site.show(c.Path), what)
			}
		}
		before := map[string]int{}
		if old != nil {
			for _, pr := range markup.Parse(from, old).Problems {
				before[pr.Message]++
			}
		}
		for _, pr := range now.Problems {
			if before[pr.Message]--; before[pr.Message] < 0 && !r.undone {
				fault("%s, line %d: %s", r.site.show(c.Path), pr.Line, pr.Message)
			}
		}
	}
	unasked, asked, err := r.unasked(changes, was)
	if err != nil {
		return nil, nil, err
	}
	if unasked != "" {
		fault("%s", unasked)
	}
	// Links: those that led somewhere must do so still, and new ones must.
	if r.before == nil {
		if r.before, _, err = was.faults(nil); err != nil {
			return nil, nil, err
		}
	}
	brokenNow, links, err := r.site.faults(r.origin)
	if err != nil {
		return nil, nil, err
	}
	restored := map[string]bool{} // by undo: what such a page links to, it linked to before
	for _, c := range changes {
		restored[c.Path] = r.undone && !c.Delete
	}
	for _, f := range sortedKeys(brokenNow) {
		if brokenNow[f].n > r.before[f].n && !restored[brokenNow[f].page] {
			fault("%s would link to %s, where nothing is", r.site.show(brokenNow[f].page), quote(brokenNow[f].dest))
		}
	}
	// Navigation.
	navs := 0
	navBefore, err1 := was.navigation()
	navNow, err2 := r.site.navigation()
	switch {
	case err2 != nil && err1 == nil:
		fault("%v", err2)
	case navNow != nil && navBefore != nil && err1 == nil && err2 == nil:
		a, err := navBefore.pages()
		if err != nil {
			return nil, nil, err
		}
		b, err := navNow.pages()
		if err != nil {
			return nil, nil, err
		}
		navs = len(b)
		for _, p := range b {
			if !r.ws.exists(p) && !slices.Contains(a, p) {
				fault("the navigation would name %s, which is not there", p)
			}
			if !r.ws.exists(p) && base.exists(p) {
				fault("the navigation would still name %s", r.site.show(p))
			}
		}
		for _, p := range a {
			to := p
			for now, from := range r.origin {
				if from == p {
					to = now
				}
			}
			if r.ws.exists(to) && !slices.Contains(b, to) && !r.dropped[to] && !r.undone {
				fault("the navigation would lose %s", r.site.show(to))
			}
		}
	}
	checked = []string{
		"the front matter parses, code blocks are closed and tags are balanced in every changed page",
		fmt.Sprintf("no internal link or anchor that worked is broken, and none was added that leads nowhere (%s looked at)", count(links, "link")),
		"no secret and no hidden character was added, and nothing outside the documentation was touched",
	}
	if asked != "" {
		checked = append(checked, asked)
	}
	if navNow != nil {
		checked = append(checked, fmt.Sprintf("the navigation in %s parses and has lost no page (%s)", navNow.file, count(navs, "entry")))
	}
	return faults, checked, nil
}

// base is the documentation as it was before the run.
func (r *run) base() (*documentation, error) {
	return r.site.at(&workspace{ctx: r.ctx, tree: r.ws.tree, project: r.ws.project, docsDir: r.ws.docsDir, limits: r.ws.limits, base: r.ws.base, over: map[string]overlay{}, cache: r.ws.cache, folded: r.ws.folded})
}

// unreadable tells why a file of data does not parse.
func unreadable(name string, content []byte) string {
	var err error
	switch strings.ToLower(path.Ext(name)) {
	case ".json":
		_, err = formats.JSONTree(content)
	case ".yml", ".yaml":
		var v yaml.Node
		err = formats.YAML(content, &v)
	}
	if err == nil {
		return ""
	}
	return oneLine(err.Error(), 200)
}

type faultCount struct {
	n          int
	page, dest string
}

// faults counts the broken links of the site, by where they stand and lead to in terms of the base.
func (s *documentation) faults(origin map[string]string) (map[string]faultCount, int, error) {
	all, err := s.all()
	if err != nil {
		return nil, 0, err
	}
	first := func(p string) string {
		if o, ok := origin[p]; ok {
			return stem(o)
		}
		for now, from := range origin {
			if stem(now) == strings.TrimSuffix(p, "/") {
				return stem(from)
			}
		}
		return p
	}
	out := map[string]faultCount{}
	n := 0
	for _, p := range all {
		if err := s.ws.ctx.Err(); err != nil {
			return nil, 0, err
		}
		n += len(p.Links)
		for _, l := range s.broken(p) {
			t := s.resolve(p.Path, l)
			to := t.path
			if t.file != "" {
				to = t.file
			}
			if t.form == sameForm {
				to = p.Path
			}
			if isPage(to) {
				if o, ok := origin[to]; ok {
					to = o
				}
				to = stem(to)
			} else {
				to = first(to)
			}
			from := p.Path
			if o, ok := origin[from]; ok {
				from = o
			}
			k := from + "\x00" + path.Clean(to) + "\x00" + t.fragment
			c := out[k]
			out[k] = faultCount{c.n + 1, p.Path, l.Dest}
		}
	}
	return out, n, nil
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

func hiddenOf(s string) string {
	return strings.Map(func(r rune) rune {
		if hidden(r) {
			return 'x'
		}
		return -1
	}, s)
}
