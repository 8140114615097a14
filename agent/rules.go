package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"docent/api"
)

// Rules names the built-in agent, which carries out instructions of fixed forms and no others.
const Rules = "rules-1"

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

// workspace bounds what a run may edit.
func (o Options) workspace() workspaceLimits {
	return workspaceLimits{MaxFile: o.MaxFile, MaxChange: o.MaxChange, MaxFiles: o.MaxFiles, Shared: o.shared}
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

// A work is a task that is carried out, with its checks and what its report needs.
type work struct {
	*run
	task  Task
	model string // that does the work
	check *checker
	whole []pulledFile // of the pull request, where it holds earlier instructions too
}

func open(ctx context.Context, task Task, opts Options) (*work, error) {
	ws, err := openWorkspace(ctx, task.Tree, task.Project.ID, task.DocsDir, opts.workspace())
	if err != nil {
		return nil, err
	}
	r, err := newRun(ctx, ws, task.Project, task.Earlier, task.Now)
	if err != nil {
		return nil, err
	}
	return &work{run: r, task: task, check: newChecker(r, task.Prompt, task.Project.Direct)}, nil
}

// rules carries out instructions of fixed forms.
func (a *Agent) rules(ctx context.Context, task Task, progress func(Progress)) (Result, error) {
	var w *work
	start := func() (*documentation, error) {
		if w == nil {
			opened, err := open(ctx, task, a.opts)
			if err != nil {
				return nil, err
			}
			opened.model = Rules
			w = opened
		}
		return w.site, nil
	}
	names := &titles{open: start}
	ops, m, err := understand(task, names)
	if names.err != nil {
		return Result{}, names.err
	}
	var mis *misunderstanding
	if errors.As(err, &mis) {
		return misunderstood(mis), nil
	} else if err != nil {
		return Result{}, err
	}
	b := &builtin{ops: ops, progress: progress, todos: make([]api.Todo, len(ops))}
	for i, op := range ops {
		b.todos[i] = api.Todo{ID: strconv.Itoa(i + 1), Content: oneLine(op.todo(), 200), Status: "pending", Priority: "medium"}
	}
	b.tell(fmt.Sprintf("Understood %s", count(len(ops), "operation")))
	if _, err := start(); err != nil {
		return Result{}, err
	}
	w.meant = map[string]bool{}
	for _, said := range m.context {
		w.kept("Taken as context and not as an instruction: %s", quote(said))
	}
	b.work = w
	return b.carryOut(ctx)
}

// understand reads a task's instruction, with what its earlier ones were about.
func understand(task Task, names *titles) ([]operation, *memory, error) {
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
	if err != nil || sayWhere(task.Prompt, ops) {
		return ops, m, err
	}
	for _, said := range m.context {
		if page := names.mentioned(said); page != "" {
			return nil, m, &misunderstanding{part: said, detail: true, why: fmt.Sprintf("it may say where, since there is the page %s, or why. Say “in %s” in the instruction where that is meant, or leave the sentence out", page, page)}
		}
	}
	return ops, m, nil
}

// A builtin run carries out operations one after the other, all of them or none.
type builtin struct {
	*work
	ops      []operation
	todos    []api.Todo
	progress func(Progress)
}

func (b *builtin) tell(text string) {
	b.progress(Progress{Title: b.todos[0].Content, Todos: slices.Clone(b.todos), Text: text})
}

func (b *builtin) carryOut(ctx context.Context) (Result, error) {
	for i, op := range b.ops {
		if err := ctx.Err(); err != nil {
			return Result{}, err
		}
		b.todos[i].Status = "in_progress"
		b.tell(b.todos[i].Content)
		before := len(b.done)
		b.replaced = nil
		if err := b.confined(op); err != nil {
			return b.refused(ctx, i, err)
		}
		b.todos[i].Status = "completed"
		b.tell(strings.Join(b.done[before:], ". "))
	}
	b.tell("Checking")
	changes, err := b.ws.changes()
	if err != nil {
		return b.refused(ctx, len(b.ops), err)
	}
	if len(changes) == 0 {
		return nothing("Nothing was changed: the pages are as the instruction asks already.", api.OutcomeNothingToDo), nil
	}
	checked, err := b.checked(changes)
	if err != nil {
		return b.refused(ctx, len(b.ops), err)
	}
	if err := b.compare(changes); err != nil {
		return Result{}, err
	}
	return b.report(changes, checked, b.todos), nil
}

// refused is the result where an operation, or what all of them led to, was refused: nothing is changed.
func (b *builtin) refused(ctx context.Context, i int, err error) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, ctx.Err()
	}
	var ref *refusal
	if !errors.As(err, &ref) {
		return Result{}, err
	}
	res := nothing("Nothing was changed: "+ref.text+".", api.OutcomeNeedsDetail)
	if ref.idle && len(b.ops) == 1 {
		res.Outcome = api.OutcomeNothingToDo
	}
	if len(b.ops) > 1 && i < len(b.ops) {
		res.Message = fmt.Sprintf("Nothing was changed, as one part cannot be done (%s): %s.", b.ops[i].todo(), ref.text)
	}
	for k := range b.todos {
		b.todos[k].Status = "cancelled"
	}
	res.Todos = b.todos
	return res, nil
}

func nothing(message string, outcome api.Outcome) Result {
	return Result{Model: Rules, Message: message, Outcome: outcome}
}

// misunderstood tells the user what was not understood, and what to say instead.
func misunderstood(e *misunderstanding) Result {
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

// checked refuses changes that would break something, and says what was looked at.
func (b *builtin) checked(changes []Change) ([]string, error) {
	faults, checked, err := b.check.problems(changes)
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
