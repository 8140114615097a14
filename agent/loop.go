package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unicode"

	"docent/agent/say"
	"docent/api"
	"docent/internal/backoff"
	"docent/internal/brief"
	"docent/internal/tracing"
)

// Limits bound what the loop with a language model may use for one instruction, over all its runs. Each is looked at
// before it is used, and each ends the work in words of its own. Zero means the default, a negative number no limit.
type Limits struct {
	Steps     int           // answers of the model; 100
	Tokens    int64         // of prompts and answers together; 2,000,000
	Cost      int64         // millionths of a US dollar; 3,000,000
	Time      time.Duration // of work; 10 min
	Bytes     int64         // of pages that are different afterwards; 1 MiB
	Record    int64         // bytes of steps that are kept to go on after a restart; 8 MiB
	Repairs   int           // rounds of repair after failed checks; 3
	Patience  time.Duration // for which a model that cannot be asked is waited for; 6 h
	Repeats   int           // same calls with the same result, after which the loop is stopped; 5
	Transient int           // failed calls in a row that are tried again; 2
}

func (l Limits) withDefaults() Limits {
	fill := func(p *int64, standard int64) {
		if *p == 0 {
			*p = standard
		} else if *p < 0 {
			*p = 1 << 62
		}
	}
	for _, f := range []struct {
		p        *int
		standard int64
	}{{&l.Steps, 100}, {&l.Repairs, 3}, {&l.Repeats, 5}, {&l.Transient, 2}} {
		n := int64(*f.p)
		fill(&n, f.standard)
		*f.p = int(n)
	}
	fill(&l.Tokens, 2_000_000)
	fill(&l.Cost, 3_000_000)
	fill(&l.Bytes, 1<<20)
	fill(&l.Record, 8<<20)
	fill((*int64)(&l.Time), int64(10*time.Minute))
	fill((*int64)(&l.Patience), int64(6*time.Hour))
	return l
}

const (
	maxMisses = 3  // answers in a row that are no use
	maxCalls  = 16 // of tools in one answer
	window    = 32_768
)

// A loop is one instruction that a language model works on: it is asked, its calls are carried out on the workspace,
// and what they gave is put to it, until it says that it has finished and the checks agree.
type loop struct {
	*work
	llm      LanguageModel
	limits   Limits
	opts     Options
	record   func(ctx context.Context, s Step) error
	aside    func(ctx context.Context, do func(ctx context.Context) error) error
	progress func(Progress)

	talk     conversation
	before   []Turn // came to the conversation since the last step
	step     Step   // the last one
	began    time.Time
	earlier  time.Duration // worked before this run
	todos    []api.Todo
	read     map[string]bool  // files that the model has seen
	opened   map[string]*code // by their labels
	spared   []string         // files that it was not let delete
	calls    []string         // the last calls with their results
	repairs  int
	reviewed string
	misses   int
	textual  bool // it has written calls of tools as text, and made none since
	allowed  *backoff.Allowance
	waited   time.Duration // for a model that could not be asked
	waiting  time.Time     // since when it is waited for; zero if it is not
	said     string        // of the waiting, last
	replay   bool
	drawn    string // state of the edits that was shown last
	answer   string // of the operator's command, for the state of the edits that it belongs to
	passed   string
	answerOf string
	printed  bool     // what the call in hand gives has the answer in it
	picture  *Picture // that the call in hand shows
}

// errNewRound says that recorded steps do not fit the tree any more.
var errNewRound = errors.New("the recorded steps belong to another tree")

func (a *Agent) loop(ctx context.Context, m LanguageModel, task Task, progress func(Progress)) (Result, error) {
	l := &loop{llm: m, limits: a.opts.Loop, opts: a.opts, record: task.Record, aside: task.Aside, progress: progress,
		began: time.Now()}
	if l.record == nil {
		l.record = func(context.Context, Step) error { return nil }
	}
	if l.aside == nil {
		l.aside = func(ctx context.Context, do func(ctx context.Context) error) error { return do(ctx) }
	}
	steps := task.Steps
	if n := len(steps); n > 0 {
		l.step, l.earlier = steps[n-1], steps[n-1].Spent.Time
	}
	outer := ctx
	if left := l.limits.Time - l.earlier; left < 1<<61 {
		var cancel context.CancelFunc
		ctx, l.allowed, cancel = backoff.WithAllowance(ctx, max(left, 0))
		defer cancel()
	}
	res, err := l.steps(ctx, task, steps)
	if errors.Is(err, errNewRound) {
		// The branch has moved, or the program is another: what the model saw is not what is there. It starts over,
		// and what it used counts.
		l.step = steps[len(steps)-1]
		res, err = l.steps(ctx, task, nil)
	}
	if err != nil && outer.Err() == nil && ctx.Err() != nil {
		return Result{}, l.ends("The agent did not end within %v.", l.limits.Time)
	}
	return res, err
}

// ends ends the loop by a limit or permanently: nothing is published.
func (l *loop) ends(format string, args ...any) error {
	return &Failure{Reason: api.HaltError, Message: fmt.Sprintf(format, args...) + " Nothing was published."}
}

func (l *loop) elapsed() time.Duration { return l.earlier + time.Since(l.began) - l.waited }

// steps goes through the recorded steps and on from there.
func (l *loop) steps(ctx context.Context, task Task, steps []Step) (Result, error) {
	w, err := open(ctx, task, l.opts)
	if err != nil {
		return Result{}, err
	}
	l.work = w
	l.read, l.opened, l.todos, l.calls, l.before = map[string]bool{}, map[string]*code{}, nil, nil, nil
	l.repairs, l.reviewed, l.misses, l.spared, l.textual = 0, "", 0, nil, false
	system, err := l.system(ctx)
	if err != nil {
		return Result{}, err
	}
	l.talk = conversation{system: system, tools: l.tools(), window: l.llm.Window()}
	if l.talk.window <= 0 {
		l.talk.window = window
	}
	if len(steps) == 0 {
		first, err := l.opening()
		if err != nil {
			return Result{}, err
		}
		l.add(first)
		if !l.llm.Priced() && l.limits.Cost < 1<<61 {
			l.tell(fmt.Sprintf("No price is known for %s, so only the limit on tokens applies, not the one on cost", say.OneLine(l.llm.Name(), 100)))
		}
		l.step = Step{Round: l.step.Round + 1, Commit: task.Tree.Commit(), Spent: l.step.Spent}
	} else {
		if done, res, err := l.resume(ctx, task, steps); err != nil || done {
			return res, err
		}
	}
	for {
		if done, res, err := l.next(ctx); err != nil || done {
			return res, err
		}
	}
}

// resume goes through recorded steps, without asking the model again.
func (l *loop) resume(ctx context.Context, task Task, steps []Step) (done bool, res Result, err error) {
	ctx, span := tracing.Start(ctx, "take up the recorded steps")
	span.Int("docent.steps", int64(len(steps)))
	defer func() { span.Done(err) }()
	last := len(steps) - 1
	for i, s := range steps {
		if err := ctx.Err(); err != nil {
			return false, Result{}, err
		}
		l.talk.add(s.Before...)
		l.talk.left, l.talk.cap = s.Left, s.Cap
		if s.Commit != task.Tree.Commit() || s.State != l.Files.State() {
			return false, Result{}, errNewRound
		}
		l.repairs, l.reviewed, l.misses = s.Repairs, s.Reviewed, s.Misses
		l.note(s.Before)
		l.replay = i < last
		done, res, err := l.take(ctx, s)
		l.replay = false
		if err != nil || done {
			return done, res, err
		}
	}
	return false, Result{}, nil
}

// next is one step: an answer of the model, and what follows from it.
func (l *loop) next(ctx context.Context) (done bool, res Result, err error) {
	ctx, span := tracing.Start(ctx, "agent step")
	defer func() { span.Done(err) }()
	s, err := l.ask(ctx)
	if err != nil {
		return false, Result{}, err
	}
	span.Int("docent.round", int64(s.Round))
	span.Int("docent.step", int64(s.Number))
	span.Int("docent.tool_calls", int64(len(s.Reply.Calls)))
	return l.take(ctx, s)
}

// add brings turns to the conversation. What is gone through again stands in the next step as it was.
func (l *loop) add(turns ...Turn) {
	if l.replay {
		return
	}
	l.before = append(l.before, turns...)
	l.talk.add(turns...)
}

// ask puts the conversation to the model and records its answer before anything follows from it.
func (l *loop) ask(ctx context.Context) (Step, error) {
	summary := false
	if !l.talk.fit() {
		summary = true
	}
	tooLong := 0
	l.waiting = l.task.Waiting
	for failures := 0; ; {
		s := Step{Round: l.step.Round, Number: l.step.Number + 1, Commit: l.step.Commit, State: l.Files.State(),
			Before: l.before, Summary: summary,
			Repairs: l.repairs, Reviewed: l.reviewed, Misses: l.misses}
		chat := l.talk.chat(summary)
		s.Left, s.Cap = l.talk.left, l.talk.cap
		if err := l.look(ctx, chat.Turns); err != nil {
			return s, err
		}
		chat.Key = fmt.Sprintf("%s/%s/%d/%d", l.task.Job, l.task.ID, s.Round, s.Number)
		if err := l.afford(chat); err != nil {
			return s, err
		}
		var err, unkept error
		asked := time.Now()
		again := l.aside(ctx, func(ctx context.Context) error {
			var reply Reply
			if reply, err = l.llm.Chat(ctx, chat); err == nil {
				s, unkept = l.keep(ctx, s, reply, chat)
			}
			return nil
		})
		switch {
		case again != nil:
			return s, again
		case ctx.Err() != nil:
			return s, ctx.Err()
		case err == nil:
			l.waiting, l.task.Waiting = time.Time{}, time.Time{}
			return s, unkept
		}
		var unavailable *Unavailable
		pause := time.Second << min(failures, 8)
		switch {
		case errors.Is(err, ErrRefused):
			return s, &Failure{Reason: api.HaltError, Message: "The language model declined to work on this instruction. Nothing was published.",
				Err: err}
		case errors.Is(err, ErrTooLong):
			if tooLong++; tooLong > 1 {
				return s, &Failure{Reason: api.HaltError, Message: "The instruction and the pages that it needs are longer than the language model's window, even shortened. Ask for less at a time, or use a model with a larger window. Nothing was published.",
					Err: err}
			}
			l.talk.shrink()
			continue
		case errors.As(err, &unavailable):
			failures++
			if l.waiting.IsZero() {
				l.waiting = asked
			}
			waited := time.Since(l.waiting)
			if waited >= l.limits.Patience {
				return s, &Failure{Reason: api.HaltError, Message: fmt.Sprintf("The language model could not be asked for %v: %s. Send the instruction again later. Nothing was published.",
					waited.Round(time.Second), strings.TrimRight(say.OneLine(unavailable.Err.Error(), 300), ".")), Err: err}
			}
			pause = min(max(unavailable.After, pause), l.limits.Patience-waited)
			l.waits(time.Since(asked)+pause, unavailable.Err)
		default:
			if failures++; failures > l.limits.Transient {
				return s, &Failure{Reason: api.HaltError, Message: "The language model failed: " + strings.TrimRight(say.OneLine(err.Error(), 300), ".") +
					". Nothing was published.", Err: err}
			}
		}
		if err := l.aside(ctx, func(ctx context.Context) error { return backoff.Sleep(ctx, pause) }); err != nil {
			return s, err
		}
	}
}

// waits says that the model cannot be asked, since when and why, and gives the run back the time that this takes.
func (l *loop) waits(d time.Duration, why error) {
	l.waited += d
	l.allowed.Extend(d)
	if l.task.Extend != nil {
		l.task.Extend(d)
	}
	if l.replay {
		return
	}
	text := fmt.Sprintf("Waiting for the model since %s: %s", l.waiting.UTC().Format("2006-01-02 15:04 UTC"),
		say.OneLine(why.Error(), 300))
	if text != l.said {
		l.said = text
		l.progress(Progress{Todos: slices.Clone(l.todos), Text: text, Waiting: l.waiting})
	}
}

// afford looks at every limit before it is used.
func (l *loop) afford(c Chat) error {
	spent := l.step.Spent
	switch tokens := int64(l.talk.tokens(c)); {
	case spent.Steps >= l.limits.Steps:
		return l.ends("The agent used up its %s before it was done. Ask for less at a time.",
			say.Count(l.limits.Steps, "step"))
	case spent.Tokens+tokens > l.limits.Tokens:
		return l.ends("The agent would need more than its %d tokens (%d are used, the next step takes about %d). Ask for less at a time.", l.limits.Tokens, spent.Tokens, tokens)
	case spent.Tokens > 0 && spent.Cost > 0 && spent.Cost+spent.Cost*tokens/spent.Tokens > l.limits.Cost:
		return l.ends("The agent would cost more than its limit of %s ($%.2f are spent). Ask for less at a time.",
			dollars(l.limits.Cost), float64(spent.Cost)/1e6)
	case l.elapsed() >= l.limits.Time:
		return l.ends("The agent did not end within %v.", l.limits.Time)
	case spent.Bytes >= l.limits.Record:
		return l.ends("The agent's steps filled the %d bytes that are kept of one instruction. Ask for less at a time.",
			l.limits.Record)
	}
	return nil
}

func dollars(cost int64) string { return fmt.Sprintf("$%.2f", float64(cost)/1e6) }

// keep records an answer and counts what it took.
func (l *loop) keep(ctx context.Context, s Step, reply Reply, chat Chat) (Step, error) {
	if len(reply.Calls) > maxCalls {
		reply.Calls = reply.Calls[:maxCalls]
	}
	reply.Calls = slices.Clone(reply.Calls)
	seen := map[string]bool{"": true}
	for i := range reply.Calls {
		if seen[reply.Calls[i].ID] { // an endpoint that does not name its calls, or not each
			reply.Calls[i].ID = fmt.Sprintf("call_%d_%d", s.Number, i+1)
		}
		seen[reply.Calls[i].ID] = true
	}
	size := len(reply.Text) + len(reply.Kept)
	for _, c := range reply.Calls {
		size += len(c.Arguments) + len(c.Name) + len(c.ID)
	}
	for _, t := range s.Before {
		size += len(t.Text)
	}
	used := int64(reply.Usage.PromptTokens + reply.Usage.CompletionTokens)
	if used == 0 {
		used = int64(l.talk.tokens(chat)) // an endpoint that does not count
	}
	s.Reply = reply
	s.Spent = Spent{
		Steps: l.step.Spent.Steps + 1, Tokens: l.step.Spent.Tokens + used, Cost: l.step.Spent.Cost + reply.Usage.Cost,
		Time: l.elapsed(), Bytes: l.step.Spent.Bytes + int64(size) + 200,
	}
	if s.Spent.Bytes > l.limits.Record+1<<20 {
		return s, l.ends("The agent's steps filled the %d bytes that are kept of one instruction. Ask for less at a time.",
			l.limits.Record)
	}
	if err := l.record(ctx, s); err != nil {
		return s, fmt.Errorf("record step %d: %w", s.Number, err)
	}
	l.before = nil
	return s, nil
}

// take lets an answer have its effect. It is done when the result is.
func (l *loop) take(ctx context.Context, s Step) (done bool, res Result, err error) {
	l.step = s
	if s.Reply.Model != "" {
		l.model = s.Reply.Model
	}
	l.talk.measure(s.Reply.Usage.PromptTokens)
	if s.Summary {
		if strings.TrimSpace(s.Reply.Text) == "" {
			l.talk.shrink()
		} else {
			l.talk.summarized(s.Reply.Text, l.editsSoFar())
		}
		return false, Result{}, nil
	}
	l.talk.add(Turn{Role: "assistant", Text: s.Reply.Text, Calls: s.Reply.Calls, Kept: s.Reply.Kept})
	if len(s.Reply.Calls) == 0 {
		return l.plain(ctx, s)
	}
	l.misses, l.textual = 0, false
	if text := say.OneLine(s.Reply.Text, 300); text != "" {
		l.tell(text)
	}
	budget := maxResults
	broken := 0
	for i, c := range s.Reply.Calls {
		l.printed, l.picture = false, nil
		text, failed, finished, err := l.call(ctx, c, s.Reply.Reason == "length" && i == len(s.Reply.Calls)-1)
		if err != nil {
			return false, Result{}, err
		}
		if finished != nil {
			return true, *finished, nil
		}
		if failed {
			broken++
		}
		if len(text) > budget {
			text = say.Middle(text, max(budget, 1000))
		}
		budget -= len(text)
		if !l.replay {
			if text, err = l.guard(c, text); err != nil {
				return false, Result{}, err
			}
			if i == len(s.Reply.Calls)-1 {
				text += l.warning()
			}
		}
		l.add(Turn{Role: "tool", CallID: c.ID, Text: text, Failed: failed, Printed: l.printed, Picture: l.picture})
	}
	l.show(ctx)
	return false, Result{}, nil
}

// show tells who follows the work what the edits come to.
func (l *loop) show(ctx context.Context) {
	state := l.Files.State()
	if l.task.Show == nil || l.replay || state == l.drawn {
		return
	}
	if changes, err := l.Files.Changes(); err == nil {
		l.drawn = state
		l.task.Show(ctx, changes)
	}
}

// plain takes an answer without a call: the model has stopped, or has forgotten how to go on.
func (l *loop) plain(ctx context.Context, s Step) (bool, Result, error) {
	text := strings.TrimSpace(s.Reply.Text)
	l.misses++
	before := l.textual
	l.textual = before || l.callAsText(text)
	if l.replay {
		return false, Result{}, nil
	}
	if before { // it was told
		return false, Result{}, l.ends("This endpoint does not call tools: the model wrote a call as text (%s). Start vLLM with --enable-auto-tool-choice and the model's --tool-call-parser, llama.cpp with --jinja, or choose a model that calls tools.",
			say.Quote(say.OneLine(text, 120)))
	}
	say := "Go on with the tools. When the work is done, or nothing can be done, call finish with a summary."
	switch {
	case s.Reply.Reason == "length":
		say = "Your answer was cut off at its length limit. Work in smaller pieces: one tool call at a time, and long pages in several edits."
	case text == "":
		say = "Your answer was empty. " + say
	case l.textual:
		say = "You wrote a call of a tool as text, and it was not carried out. Call tools by the means that you are given for it, not in your answer's text."
	case l.misses >= 2: // it insists: its words are its summary
		text, failed, res, err := l.finish(ctx, finishArgs{Summary: text})
		if err != nil {
			return false, Result{}, err
		}
		if res != nil {
			return true, *res, nil
		}
		if !failed {
			l.misses = 0
		}
		say = text
	}
	if l.misses >= maxMisses && s.Reply.Reason == "length" {
		return false, Result{}, l.ends("The language model's answers were cut off at their length limit before they called a tool, %d times in a row. Raise max_tokens of this model, or lower its reasoning_effort.", maxMisses)
	}
	if l.misses >= maxMisses {
		return false, Result{}, l.ends("The language model gave no usable answer %d times in a row.", maxMisses)
	}
	l.add(Turn{Role: "user", Text: say})
	return false, Result{}, nil
}

// guard stops a model that does the same again and again.
func (l *loop) guard(c Call, text string) (string, error) {
	l.calls = append(l.calls, c.Name+"\x00"+c.Arguments+"\x00"+text)
	const within = 12
	recent := l.calls[max(len(l.calls)-within, 0):]
	l.calls = recent
	n := 0
	for _, k := range recent {
		if k == l.calls[len(l.calls)-1] {
			n++
		}
	}
	switch {
	case n >= l.limits.Repeats:
		return "", l.ends("The agent went in a circle: it called %s with the same result %d times, so it was stopped.",
			say.Quote(c.Name), n)
	case n >= 3:
		return text + fmt.Sprintf(
			"\n\n(This is the same call with the same result for the %s time. Do something else; after %d times the work is stopped.)", ordinal(n), l.limits.Repeats), nil
	}
	return text, nil
}

func ordinal(n int) string {
	switch n {
	case 3:
		return "third"
	case 4:
		return "fourth"
	}
	return fmt.Sprintf("%dth", n)
}

// note keeps in mind what recorded calls gave.
func (l *loop) note(turns []Turn) {
	for _, t := range turns {
		if t.Role != "tool" {
			continue
		}
		for _, c := range l.talk.callsOf(t.CallID) {
			text, _, _ := strings.Cut(t.Text, "\n\n(This is the same call")
			l.calls = append(l.calls, c.Name+"\x00"+c.Arguments+"\x00"+text)
		}
	}
}

// warning tells the model that a limit comes near.
func (l *loop) warning() string {
	spent := l.step.Spent
	left := l.limits.Steps - spent.Steps
	switch {
	case left == 10 || left <= 3 && left > 0:
		return fmt.Sprintf("\n\n(%s left. Bring the work to an end and call finish.)", say.Count(left, "step"))
	case spent.Tokens > l.limits.Tokens*9/10 || spent.Cost > l.limits.Cost/10*9:
		return "\n\n(The limit on tokens or cost is near. Bring the work to an end and call finish.)"
	}
	return ""
}

// call runs one tool. A tool that fails, even in the program, gives a failed result and leaves the edits as they were.
func (l *loop) call(ctx context.Context, c Call, cut bool) (text string, failed bool, res *Result, err error) {
	tool, ok := toolByName(plainName(c.Name))
	if !ok || !l.offers(tool) {
		return fmt.Sprintf("There is no tool %s. The tools are: %s.", say.Quote(c.Name), strings.Join(l.toolNames(), ", ")),
			true, nil, nil
	}
	if l.replay && tool.reads {
		return "", false, nil, nil // its result is recorded, and the edits do not depend on it
	}
	before := l.Save()
	defer func() {
		if p := recover(); p != nil {
			l.Restore(before)
			if l.opts.Log != nil {
				l.opts.Log.Error("a tool panicked", "job", l.task.Job, "tool", c.Name, "panic", fmt.Sprint(p), "stack",
					string(debug.Stack()))
			}
			text, failed, res, err = "The tool failed inside. Try it in another way.", true, nil, nil
		}
	}()
	within, span := tracing.Start(ctx, "execute_tool "+tool.Name)
	text, failed, res, err = tool.run(l, within, c.Arguments)
	if span.On() {
		span.Str("gen_ai.operation.name", "execute_tool")
		span.Str("gen_ai.tool.name", tool.Name)
		if failed && err == nil {
			span.Failed("failed")
		}
		span.Done(err)
	}
	bad, misused := errors.AsType[*badArguments](err)
	ref, refused := say.AsRefusal(err)
	switch {
	case misused:
		l.Restore(before)
		text, failed, err = bad.Error(), true, nil
		if cut {
			text = "Your answer was cut off at its length limit, so the arguments are incomplete. Work in smaller pieces: long pages in several edits. (" + text + ")"
		}
	case refused:
		l.Restore(before)
		text, failed, err = l.sentence(ref.Text), true, nil
	case err != nil:
		return "", false, nil, err
	}
	if err := l.bounds(); err != nil {
		return "", false, nil, err
	}
	text = cmp.Or(text, "Done; there is nothing to show.")
	return text, failed, res, nil
}

// bounds holds the edits to their limits.
func (l *loop) bounds() error {
	if changed := l.Files.ChangedBytes(); changed > l.limits.Bytes {
		return l.ends("The agent changed or deleted %d bytes, more than the %d that one instruction may change. Ask for less at a time.", changed, l.limits.Bytes)
	}
	return nil
}

func (l *loop) tell(text string) {
	if l.replay {
		return
	}
	p := Progress{Todos: slices.Clone(l.todos), Text: text}
	l.progress(p)
}

// sentence makes one of a refusal. A path that it begins with stays as it is.
func (l *loop) sentence(text string) string {
	word, _, _ := strings.Cut(text, " ")
	if strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsLetter(r) }) ||
		l.Files.There(path.Join(l.Files.DocsDir, word)) {
		return text + "."
	}
	return brief.Capital(text) + "."
}
