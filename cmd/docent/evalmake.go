package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"docent/actors/thread"
	"docent/api"
	"docent/evaluation"
	"docent/persistence/catalog"
	"docent/persistence/journal"
)

const opEvaluateRated = "answers.rated"

type (
	ratedParams struct {
		Project  api.ProjectID `json:"project"`
		From     time.Time     `json:"from,omitzero"`
		Most     int           `json:"most"`
		Comments bool          `json:"comments"`
	}
	ratedList struct {
		Rated []evaluation.Rated `json:"rated"`
		// Retention is how long the project's conversations are kept; 0 for ever.
		Retention time.Duration `json:"retention"`
	}
)

// ratedAnswers lists a project's rated questions, newest first and each once, without who asked.
func (o *operations) ratedAnswers(ctx context.Context, p ratedParams, progress Progress) (list ratedList, err error) {
	if _, err := o.stores.catalog.Project(ctx, p.Project); err != nil {
		return list, fmt.Errorf("project %q: %w", p.Project, err)
	}
	list.Retention = o.stores.config.ThreadRetention.Duration
	if p.Comments && list.Retention > 0 {
		return list, fmt.Errorf("thread_retention is %v: what readers wrote is removed then, and a file keeps it. Leave --comments out",
			list.Retention)
	}
	seen := map[string]bool{}
	err = o.withJournal(ctx, func(j journal.Store) error {
		q := catalog.AnalyticsQuery{Project: p.Project, From: p.From, Limit: 100}
		for len(list.Rated) < p.Most {
			rows, next, err := o.stores.catalog.Feedback(ctx, q)
			if err != nil {
				return err
			}
			for _, row := range rows {
				if seen[row.Question] || row.Error != "" || len(list.Rated) == p.Most {
					continue
				}
				seen[row.Question] = true
				list.Rated = append(list.Rated, o.rated(ctx, j, &row, p.Comments))
				progress("reading rated answers", len(list.Rated), p.Most)
			}
			if q.After = next; next == "" {
				return nil
			}
		}
		return nil
	})
	return list, err
}

func (o *operations) rated(ctx context.Context, j journal.Store, row *api.QuestionRow, comments bool) evaluation.Rated {
	r := evaluation.Rated{Question: row.Question, Answer: row.Answer, Up: row.Rating == api.RatedUp}
	if comments {
		r.Comment = row.Comment
	}
	for _, s := range row.Sources {
		at := s.Page()
		if p, err := o.stores.library.Page(ctx, row.Project, at, nil); err == nil {
			at = p.Path
		}
		if !slices.Contains(r.Sources, at) {
			r.Sources = append(r.Sources, at)
		}
	}
	rec, err := j.Load(thread.Stream(row.Thread))
	if err != nil {
		return r // the thread is gone, and its row will be
	}
	if c, ok, err := thread.History(row.Thread, rec); ok && err == nil {
		for _, e := range c.Turns {
			if e.Turn == row.ID {
				return r
			}
			r.Before = append(r.Before, e.Question)
		}
		r.Before = nil // replaced since: nobody knows what was before it
	}
	return r
}

func newEvalMakeCommand(o *operator) *cobra.Command {
	var p ratedParams
	var out string
	var fromRatings bool
	var since time.Duration
	cmd := &cobra.Command{
		Use: "make", Short: "Write a file of questions for `eval answers`, from answers that readers have rated",
		Args: cobra.NoArgs,
		Long: "Writes a YAML file for `docent eval answers`. An answer that readers liked becomes a question with the pages that\n" +
			"it cites and strings of its text as facts, for a person to trim; one that they disliked is left open, for a person\n" +
			"to write down what would be right. Nothing says who asked; addresses, telephone numbers and keys in what readers\n" +
			"wrote are taken out, names of people cannot be.",
		Example: "  docent eval make --from-ratings --project docs --out questions.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := required(cmd, "project"); err != nil {
				return err
			}
			switch {
			case !fromRatings:
				return usagef("eval make needs to know what from: --from-ratings; see 'docent eval make --help'")
			case p.Most < 1 || p.Most > 5000:
				return usagef("--most is from 1 to 5000")
			}
			if since > 0 {
				p.From = time.Now().Add(-since)
			}
			var list ratedList
			if err := o.run(cmd, opEvaluateRated, p, &list); err != nil {
				return err
			}
			if len(list.Rated) == 0 {
				return errors.New("no answer of this project is rated yet: readers rate in the widget, clients over POST /discovery/v1/feedback/DOMAIN")
			}
			if list.Retention > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "Conversations are removed %v after their last use, this file is not: take out what readers wrote about themselves.\n",
					list.Retention)
			}
			if out == "" {
				return evaluation.WriteRated(cmd.OutOrStdout(), list.Rated)
			}
			return writeNew(out, func(w io.Writer) error { return evaluation.WriteRated(w, list.Rated) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar((*string)(&p.Project), "project", "", "project")
	flags.BoolVar(&fromRatings, "from-ratings", false, "from the answers that readers have rated")
	flags.DurationVar(&since, "since", 0, "only ratings of this long ago at most, such as 720h")
	flags.IntVar(&p.Most, "most", 200, "questions at most; the newest ratings are taken")
	flags.BoolVar(&p.Comments, "comments", false, "write what readers said beside their rating, as comments of the file")
	flags.StringVar(&out, "out", "", "file to write, which must not be there; standard output where empty")
	return cmd
}

// writeNew writes a file that is not there yet.
func writeNew(name string, write func(io.Writer) error) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
