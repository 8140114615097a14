package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"docent/agent/edit"
	"docent/agent/pages"
	"docent/agent/rules"
	"docent/agent/say"
	"docent/api"
)

// rules carries out instructions of fixed forms.
func (a *Agent) rules(ctx context.Context, task Task, progress func(Progress)) (Result, error) {
	var w *work
	start := func() (*pages.Site, error) {
		if w == nil {
			opened, err := open(ctx, task, a.opts)
			if err != nil {
				return nil, err
			}
			opened.model = Rules
			w = opened
		}
		return w.Site, nil
	}
	names := &pages.Titles{Open: start}
	ops, m, err := understand(task, names)
	if names.Err != nil {
		return Result{}, names.Err
	}
	if mis, ok := errors.AsType[*rules.Misunderstanding](err); ok {
		if mis.Detail || mis.Why != "" { // it is an instruction of a fixed form, but for that
			return misunderstood(mis, task.Prompt, nil), nil
		}
		if _, err := start(); err != nil {
			return Result{}, err
		}
		res, read, err := a.asked(ctx, &builtin{work: w, progress: progress}, task.Prompt, names)
		if err != nil || read {
			return res, err
		}
		return misunderstood(mis, task.Prompt, w.Site), nil
	} else if err != nil {
		return Result{}, err
	}
	b := &builtin{ops: ops, progress: progress, todos: make([]api.Todo, len(ops))}
	for i, op := range ops {
		b.todos[i] = api.Todo{ID: strconv.Itoa(i + 1), Content: say.OneLine(op.Todo(), 200), Status: "pending",
			Priority: "medium"}
	}
	b.tell(fmt.Sprintf("Understood %s", say.Count(len(ops), "operation")))
	if _, err := start(); err != nil {
		return Result{}, err
	}
	w.Meant = map[string]bool{}
	for _, said := range m.Context {
		w.Kept("Taken as context and not as an instruction: %s", say.Quote(said))
	}
	b.work = w
	before := w.Save()
	res, err := b.carryOut(ctx)
	if err != nil || !b.coded || !plain(ops) {
		return res, err
	}
	w.Restore(before) // no form looks for a text in code by itself
	if again, read, err := a.asked(ctx, &builtin{work: w, progress: progress}, task.Prompt, names); err != nil || read && len(again.Changes) > 0 {
		return again, err
	}
	return res, nil
}

// plain reports whether instructions ask for no more than one text in the place of another, on a page at most.
func plain(ops []edit.Operation) bool {
	if len(ops) != 1 {
		return false
	}
	switch ops[0].(type) {
	case *edit.Replace, *edit.Rename:
	default:
		return false
	}
	return ops[0].Where().Plain()
}

// understand reads a task's instruction, with what its earlier ones were about.
func understand(task Task, names *pages.Titles) ([]edit.Operation, *rules.Memory, error) {
	m := &rules.Memory{Guide: names}
	for _, e := range task.Earlier {
		if e.Commit == "" {
			continue // it changed nothing, so nothing follows from it
		}
		then := *m
		if _, err := rules.Parse(e.Prompt, &then); err == nil {
			*m = then
		}
	}
	ops, err := rules.Parse(task.Prompt, m)
	if err != nil {
		return ops, m, err
	}
	if i := slices.IndexFunc(m.Context, rules.Hedges); i >= 0 {
		return nil, m, &rules.Misunderstanding{Part: m.Context[i], Detail: true,
			Why: "it may say when the rest is to be done, or that it is not. Leave the sentence out if it is to be done now"}
	}
	if rules.SayWhere(task.Prompt, ops) {
		return ops, m, nil
	}
	for _, said := range m.Context {
		if page := names.Mentioned(said); page != "" {
			return nil, m, &rules.Misunderstanding{Part: said, Detail: true,
				Why: fmt.Sprintf("it may say where, since there is the page %s, or why. Say “in %s” in the instruction if that is meant, or leave the sentence out", page, page)}
		}
	}
	return ops, m, nil
}

// A builtin run carries out operations one after the other, all of them or none.
type builtin struct {
	*work
	ops      []edit.Operation
	todos    []api.Todo
	progress func(Progress)
	coded    bool // an operation was refused, as its text stands in code alone
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
		before := len(b.Done)
		if err := b.Do(op); err != nil {
			return b.refused(ctx, i, err)
		}
		b.todos[i].Status = "completed"
		b.tell(strings.Join(b.Done[before:], ". "))
	}
	return b.finish(ctx)
}

// finish checks what was done, and reports it.
func (b *builtin) finish(ctx context.Context) (Result, error) {
	b.tell("Checking")
	changes, err := b.Files.Changes()
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

// refused is the result if an operation, or what all of them led to, was refused: nothing is changed.
func (b *builtin) refused(ctx context.Context, i int, err error) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, ctx.Err()
	}
	if d, ok := err.(*edit.Doubt); ok && i < len(b.ops) {
		if op, ok := b.ops[i].(*edit.Correct); ok { // beside others too: what it leaves open is for the user to say
			res := unsettled(op, d.Why, d, b.Site)
			if len(b.ops) > 1 {
				res.Todos = b.canceled()
			}
			return res, nil
		}
	}
	ref, ok := say.AsRefusal(err)
	if !ok {
		return Result{}, err
	}
	b.coded = ref.Code
	res := nothing("Nothing was changed: "+ref.Text+".", api.OutcomeNeedsDetail)
	if ref.Idle && len(b.ops) == 1 {
		res.Outcome = api.OutcomeNothingToDo
	}
	if len(b.ops) > 1 && i < len(b.ops) {
		res.Message = fmt.Sprintf("Nothing was changed, as one part cannot be done (%s): %s.", b.ops[i].Todo(), ref.Text)
	}
	res.Todos = b.canceled()
	return res, nil
}

// canceled are the todos of a run that changes nothing.
func (b *builtin) canceled() []api.Todo {
	for k := range b.todos {
		b.todos[k].Status = "cancelled"
	}
	return b.todos
}

func nothing(message string, outcome api.Outcome) Result {
	return Result{Model: Rules, Message: message, Outcome: outcome}
}

// misunderstood tells the user what was not understood, and what to say instead.
func misunderstood(e *rules.Misunderstanding, prompt string, site *pages.Site) Result {
	text := e.Error() + " Nothing was changed"
	if e.Others {
		text += ", also not by the other parts: a prompt is carried out whole or not at all"
	}
	text += "."
	if e.Nearest != "" {
		text += "\n\nThe nearest instruction that I know: " + e.Nearest
		var fill []string
		if strings.Contains(e.Nearest, "PAGE") {
			fill = append(fill, "the path of a page for PAGE")
		}
		if strings.Contains(e.Nearest, "…") {
			fill = append(fill, "your words for …")
		}
		if len(fill) > 0 {
			text += "\n(Put " + strings.Join(fill, ", and ") + ".)"
		}
	} else if !e.Detail {
		text += "\n\n" + missing(e, prompt, site)
	}
	outcome := api.OutcomeNotUnderstood
	if e.Detail {
		outcome = api.OutcomeNeedsDetail
	}
	return nothing(text+
		"\n\nI work without a language model and carry out instructions of fixed forms. “docent job create --help” lists them, and so does the page agent/instructions of Docent's documentation. A language model, which an operator connects on the console's page Models, takes any instruction.", outcome)
}

// missing says what was read of a text that comes near to no form, what is missing, and the form with what is known.
func missing(e *rules.Misunderstanding, prompt string, site *pages.Site) string {
	texts, paths := rules.Known(prompt)
	if len(paths) == 0 && site != nil {
		for _, m := range rules.Read(prompt).Places {
			if f, _ := site.Public(m.Text); m.Kind == rules.URLMention && f != "" && !slices.Contains(paths, site.Show(f)) {
				paths = append(paths, site.Show(f))
			}
		}
	}
	var known, lack []string
	form := [3]string{"…", "…", "PAGE"}
	switch len(texts) {
	case 0:
		lack = append(lack, "the text that stands there and the one that is to stand there, in quotes")
	case 1:
		known = append(known, "the text "+say.Quote(texts[0]))
		form[0] = say.OneLine(texts[0], 80)
		lack = append(lack, "what is to become of it")
	default:
		known = append(known, say.Count(len(texts), "text")+" in quotes")
		lack = append(lack, "which of them stands there and which is to stand there")
	}
	if len(paths) == 1 {
		known = append(known, "the page "+say.Quote(paths[0]))
		form[2] = say.OneLine(paths[0], 200)
	} else {
		lack = append(lack, "the page")
	}
	if r := rules.Restriction(e.Part); r != "" {
		lack = append(lack, "a way to say "+say.Quote(r)+", which restricts it and which no form has: name the section, or the text with words around it")
	}
	s := "Missing: " + strings.Join(lack, "; ") + "."
	if len(known) > 0 {
		s = "Understood: " + strings.Join(known, ", ") + ". " + s
	}
	return s + fmt.Sprintf("\nFill in what is missing: replace %q with %q in %s", form[0], form[1], form[2])
}

// checked refuses changes that would break something, and says what was looked at.
func (b *builtin) checked(changes []Change) ([]string, error) {
	faults, checked, err := b.check.Problems(changes)
	if err != nil {
		return nil, err
	}
	if len(faults) > 0 {
		more := ""
		if len(faults) > 10 {
			more = fmt.Sprintf("; and %d more", len(faults)-10)
			faults = faults[:10]
		}
		return nil, say.Refuse("the check of the result failed: %s%s", strings.Join(faults, "; "), more)
	}
	return checked, nil
}
