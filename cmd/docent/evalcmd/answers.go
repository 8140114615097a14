package evalcmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/cobra"

	"docent/api"
	"docent/api/client"
	"docent/bench/evaluation"
	"docent/bench/lab"
	"docent/cmd/docent/cli"
	"docent/cmd/docent/config"
	"docent/cmd/docent/operator"
	"docent/internal/brief"
)

// An answersCommand is what `docent eval answers` was told.
type answersCommand struct {
	*cli.Operator
	client *client.Client

	file, project, source string
	docsDir, site, title  string
	model, save, against  string
	tags                  []string
	failUnder             float64
	failOnRegression, all bool
	atOnce                int

	config config.Config
	set    evaluation.Set
}

func newEvalAnswersCommand(o *cli.Operator, c *client.Client) *cobra.Command {
	a := &answersCommand{Operator: o, client: c}
	cmd := &cobra.Command{
		Use: "answers FILE", Short: "Ask the questions of a file and judge the answers; compare two runs",
		Long: "Ask every question in a YAML file and judge each answer by what the file expects: the pages that it must cite, the facts\n" +
			"that its text must contain, or that the documentation has no answer. The questions count toward no reader's quota and do\n" +
			"not appear in analytics.\n\n" +
			"  questions:\n" +
			"    - ask: How do I rotate a key?\n" +
			"      sources: [guides/keys.md]\n" +
			"      facts: [docent key rotate, {any: [24 hours, one day]}]\n" +
			"    - ask: Can keys be shared between organizations?\n" +
			"      unanswerable: true\n\n" +
			"With --source, a temporary server runs on a folder of documentation. With --project, the server on this machine answers;\n" +
			"with --project, --url, and --key (an admin key), a server over HTTP.",
		Example: "  docent eval answers questions.yaml --source ./docs --save before.json\n" +
			"  docent eval answers questions.yaml --source ./docs --against before.json --fail-on-regression\n" +
			"  docent eval answers questions.yaml --project docs --model gpt --fail-under 80",
		RunE: a.run,
	}
	flags := cmd.Flags()
	flags.StringVar(&a.project, "project", "", "project of a server")
	flags.StringVar(&a.source, "source", "", "folder of documentation to run a temporary server on")
	flags.StringVar(&a.docsDir, "docs-dir", "", "sub-folder of --source that holds the documentation")
	flags.StringVar(&a.site, "site", "", "site generator of --source; default: recognized by its files")
	flags.StringVar(&a.title, "title", "", "name of the product in --source, as used in answers")
	flags.StringVar(&a.model, "model", "", "model that answers: builtin, or a name from the server's configuration")
	flags.StringVar(&a.save, "save", "", "write the run to this file")
	flags.StringVar(&a.against, "against", "", "compare with the run saved in this file")
	flags.StringSliceVar(&a.tags, "tag", nil, "ask only questions with one of these tags (a conversation is always asked whole)")
	flags.Float64Var(&a.failUnder, "fail-under", 0, "exit with status 1 if fewer than this percentage of judged questions pass")
	flags.BoolVar(&a.failOnRegression, "fail-on-regression", false,
		"exit with status 1 if a question fails that passed in --against")
	flags.BoolVar(&a.all, "all", false, "also show the answers that passed")
	flags.IntVar(&a.atOnce, "at-once", 4, "number of conversations to ask at the same time")
	cli.Named(cmd, &a.file, "file", "a FILE of questions", false)
	return cmd
}

func (a *answersCommand) run(cmd *cobra.Command, _ []string) error {
	before, err := a.read(cmd)
	if err != nil {
		return err
	}
	results, err := a.answers(cmd)
	if err != nil {
		return err
	}
	run := evaluation.NewRun(a.model, time.Now(), results)
	if a.save != "" {
		if err := saveRun(a.save, run); err != nil {
			return err
		}
	}
	report := newAnswersReport(a.file, run, before)
	if a.JSON {
		err = cli.PrintJSON(cmd.OutOrStdout(), report)
	} else {
		err = report.print(cmd.OutOrStdout(), a.all)
	}
	return cmp.Or(err, a.failure(report))
}

// read checks all that can be checked before anything is asked, and reads the run to compare with.
func (a *answersCommand) read(cmd *cobra.Command) (before *evaluation.Run, err error) {
	switch {
	case (a.source == "") == (a.project == ""):
		return nil, cli.Usagef("eval answers needs either --source FOLDER or --project; see 'docent eval answers --help'")
	case a.source == "" && cmp.Or(a.docsDir, a.site, a.title) != "":
		return nil, cli.Usagef("--docs-dir, --site and --title say how --source is read: a project of a server has its own")
	case a.failOnRegression && a.against == "":
		return nil, cli.Usagef("--fail-on-regression needs --against: the run that nothing may be worse than")
	case a.failUnder < 0 || a.failUnder > 100:
		return nil, cli.Usagef("--fail-under is a percentage, from 0 to 100")
	case a.atOnce < 1 || a.atOnce > 64:
		return nil, cli.Usagef("--at-once is from 1 to 64")
	}
	if a.config, err = a.Load(cmd); err != nil {
		return nil, err
	}
	src, err := os.ReadFile(a.file)
	if err != nil {
		return nil, fmt.Errorf("read the questions: %w", err)
	}
	if a.set, err = evaluation.Read(a.file, src); err != nil {
		return nil, err
	}
	if len(a.tags) > 0 {
		a.set.Conversations = slices.DeleteFunc(a.set.Conversations, func(c []evaluation.Question) bool {
			return !slices.ContainsFunc(c, func(q evaluation.Question) bool {
				return slices.ContainsFunc(q.Tags, func(t string) bool { return slices.Contains(a.tags, t) })
			})
		})
	}
	if len(a.set.Conversations) == 0 {
		return nil, fmt.Errorf("%s has no question with the tag %s", a.file, strings.Join(a.tags, " or "))
	}
	if a.against == "" {
		return nil, nil
	}
	if src, err = os.ReadFile(a.against); err != nil {
		return nil, fmt.Errorf("read the run to compare with: %w", err)
	}
	saved, err := a.set.ReadRun(a.against, src)
	return &saved, err
}

// failure is why the command does not end well, where it was asked to say so.
func (a *answersCommand) failure(r *answersReport) error {
	var errs []error
	if rate := 100 * r.All.PassRate(); rate < a.failUnder {
		errs = append(errs, fmt.Errorf("%.1f %% of the questions pass, and --fail-under is %g %%", rate, a.failUnder))
	}
	if c := r.Against; a.failOnRegression && c != nil && len(c.Worse) > 0 {
		errs = append(errs, fmt.Errorf("%s passed before and no longer %s", brief.Count(len(c.Worse), "question"), map[bool]string{true: "does", false: "do"}[len(c.Worse) == 1]))
	}
	return errors.Join(errs...)
}

func saveRun(file string, run evaluation.Run) error {
	text, err := json.MarshalIndent(run, "", " ")
	if err == nil {
		err = os.WriteFile(file, append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("save the run: %w", err)
	}
	return nil
}

// answers asks the questions where the command was told to.
func (a *answersCommand) answers(cmd *cobra.Command) ([]evaluation.Result, error) {
	ctx := cmd.Context()
	progress, end := cli.ShowProgress(cmd.ErrOrStderr(), slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)))
	defer end()
	told := func(n, of int) { progress("asking", n, of) }
	switch {
	case a.source != "":
		process, err := a.serve(ctx)
		if err != nil {
			return nil, err
		}
		defer process.Close()
		c := &client.Client{Base: process.URL, Key: process.Admin}
		return a.set.Do(ctx, a.atOnce, a.over(c, lab.ProjectID), told)
	case cmd.Flags().Changed("url") || a.client.Key != "":
		if a.client.Key == "" {
			return nil, cli.Usagef("--url needs --key: an admin key of the project's organization")
		}
		return a.set.Do(ctx, a.atOnce, a.over(a.client, a.project), told)
	}
	p := operator.AnswersParams{Project: api.ProjectID(a.project), AtOnce: a.atOnce}
	place := map[string]int{}
	for i, c := range a.set.Conversations {
		place[c[0].ID] = i
		p.Conversations = append(p.Conversations, a.conversation(c))
	}
	var all [][]client.EvaluatedAnswer
	if err := a.Operator.Run(cmd, operator.OpEvaluateAnswers, p, &all); err != nil {
		return nil, err
	}
	return a.set.Do(ctx, 1, func(_ context.Context, c []evaluation.Question) ([]evaluation.Answer, error) {
		return evaluated(all[place[c[0].ID]]), nil
	}, func(int, int) {})
}

// over asks a server.
func (a *answersCommand) over(c *client.Client, project string) evaluation.Ask {
	return func(ctx context.Context, conversation []evaluation.Question) ([]evaluation.Answer, error) {
		got, err := c.Evaluate(ctx, project, a.conversation(conversation))
		return evaluated(got.Answers), err
	}
}

func (a *answersCommand) conversation(questions []evaluation.Question) client.Evaluate {
	out := client.Evaluate{Model: a.model}
	for _, q := range questions {
		asked := client.EvaluateQuestion{Question: q.Ask, CurrentPath: q.CurrentPath}
		if q.Version != "" || q.Language != "" {
			asked.Filter = &client.Filter{Version: q.Version, Language: q.Language}
		}
		out.Questions = append(out.Questions, asked)
	}
	return out
}

func evaluated(answers []client.EvaluatedAnswer) []evaluation.Answer {
	out := make([]evaluation.Answer, len(answers))
	for i, a := range answers {
		out[i] = evaluation.Answer{Text: a.Answer, Answered: a.Answered, Model: a.Model,
			FallbackFor: whole(a.FallbackFor), Error: whole(a.Error), Degraded: a.Degraded, Took: time.Duration(a.TookMS) * time.Millisecond}
		for _, s := range a.Sources {
			out[i].Sources = append(out[i].Sources, evaluation.Source(s))
		}
	}
	return out
}

// whole is the text; nothing where there is none.
func whole(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// modelSettings are what a server that is run for an evaluation takes over from the configuration: what has to do with
// answers. It touches nothing else that the file names: no catalog, no backups.
var modelSettings = []string{"default_model", "models", "model_aliases", "embeddings", "turn_timeout"}

// serve runs a server on the folder, in a directory of its own.
func (a *answersCommand) serve(ctx context.Context) (_ *lab.Process, err error) {
	folder, err := filepath.Abs(a.source)
	if err != nil {
		return nil, err
	}
	if st, err := os.Stat(folder); err != nil || !st.IsDir() {
		return nil, fmt.Errorf("--source: %s is no folder", a.source)
	}
	p, err := lab.NewProcess("eval")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	if p.Env, err = a.childEnv(), a.childConfig(p); err != nil {
		return nil, err
	}
	if err := p.Serve(ctx, "127.0.0.1:0"); err != nil {
		return nil, err
	}
	var more []string
	for flag, value := range map[string]string{"--docs-dir": a.docsDir, "--site": a.site, "--title": a.title} {
		if value != "" {
			more = append(more, flag, value)
		}
	}
	_, err = p.MakeProject(ctx, folder, more...)
	return p, err
}

// childEnv is this process's environment without the settings of a server, but for those of its models.
func (a *answersCommand) childEnv() []string {
	other := map[string]bool{}
	for _, setting := range a.config.Settings() {
		table, _, _ := strings.Cut(setting.Name, ".")
		other[setting.Env()] = !slices.Contains(modelSettings, table)
	}
	return slices.DeleteFunc(os.Environ(), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return other[name]
	})
}

// childConfig writes the configuration's part that has to do with answers.
func (a *answersCommand) childConfig(p *lab.Process) error {
	if a.Operator.Config == "" {
		return nil
	}
	text, err := os.ReadFile(a.Operator.Config)
	if err != nil {
		return err
	}
	var every map[string]any
	if err := toml.Unmarshal(text, &every); err != nil {
		return err
	}
	kept := map[string]any{}
	for _, name := range modelSettings {
		if v, ok := every[name]; ok {
			kept[name] = v
		}
	}
	if text, err = toml.Marshal(kept); err != nil {
		return err
	}
	p.Config = filepath.Join(p.Dir, "docent.toml")
	return os.WriteFile(p.Config, text, 0o600)
}
