package insights_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/api"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/catalog/insights"
)

func TestOpenQuestionsAreThoseThatWereNotAnsweredWell(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c, l := p.Open(catalog.Options{}), newThreadLog()
		projector, _ := runThreadProjector(t, c, l)
		l.edit(1, calls("ann", asked("a", 0), asked("b", 2, unanswered), asked("c", 3, rated(api.RatedDown, 50))))
		l.edit(2, asks(asked("d", 4, failed), asked("e", 5, unanswered, replaced), asked("f", 6, rated(api.RatedUp, 7))))
		l.edit(3, asks(asked("g", 7, unanswered, rated(api.RatedUp, 9))))
		l.edit(4, func(r *api.ThreadRow) {
			r.Project = "blog"
			r.Questions = append(r.Questions, asked("h", 5, unanswered))
		})
		catalogtest.Reach(t, projector)

		names := func(marks []insights.QuestionMark) string {
			var out []string
			for _, m := range marks {
				out = append(out, strings.TrimPrefix(string(m.ID), "msg_"))
			}
			return strings.Join(out, " ")
		}
		q := insights.AnalyticsQuery{Project: "docs", Limit: 10}
		marks, more, err := c.OpenQuestions(t.Context(), q)
		if err != nil || more || names(marks) != "g c b" {
			t.Errorf("open are %s, %v, %v", names(marks), more, err)
		}
		q.Limit = 2
		if two, more, err := c.OpenQuestions(t.Context(), q); err != nil || !more || names(two) != "g c" {
			t.Errorf("the newest two are %s, %v, %v", names(two), more, err)
		}
		q.From = midday.Add(5 * time.Minute)
		if late, _, err := c.OpenQuestions(t.Context(), q); err != nil || names(late) != "g" {
			t.Errorf("later ones are %s, %v", names(late), err)
		}
		if all, _, err := c.QuestionMarks(t.Context(), insights.AnalyticsQuery{Project: "docs", Limit: 10}); err != nil ||
			names(all) != "g f d c b a" {
			t.Errorf("all are %s, %v", names(all), err)
		}
		rows, err := c.QuestionsOf(t.Context(), "docs", []api.TurnID{"msg_b", "msg_h", "msg_none", "\x00"})
		if err != nil || len(rows) != 1 || rows[0].Question != "Q b" || rows[0].Caller != "ann" {
			t.Errorf("read are %+v, %v", rows, err)
		}
		l.edit(1, func(r *api.ThreadRow) { r.Questions[1].Comment = "another" })
		catalogtest.Reach(t, projector)
		changed, _, err := c.OpenQuestions(t.Context(), insights.AnalyticsQuery{Project: "docs", Limit: 10})
		if err != nil || changed[2].ID != "msg_b" || changed[2].Version == marks[2].Version {
			t.Errorf("a question that has changed has the same mark: %+v, %v", changed, err)
		}
	})
}

// TestOpenQuestionsAreFoundByTheirIndex: among a hundred thousand questions, those that are open are a few.
func TestOpenQuestionsAreFoundByTheirIndex(t *testing.T) {
	c := catalogtest.Must(catalog.Open(t.Context(), catalogtest.SQLite(t), catalog.Options{}))(t)
	defer c.Close()
	sel := insights.AnalyticsQuery{Project: "docs", From: midday, To: midday.Add(time.Hour)}.Between(
		c.Read.NewSelect().Model((*insights.QuestionRow)(nil)).Column("id", "asked_at", "version").Where(insights.OpenWhere), "asked_at").
		OrderExpr("asked_at DESC, id DESC").Limit(10)
	var plan []struct {
		ID, Parent, Notused int
		Detail              string
	}
	if err := c.Read.NewRaw("EXPLAIN QUERY PLAN "+sel.String()).Scan(t.Context(), &plan); err != nil {
		t.Fatal(err)
	}
	said := fmt.Sprint(plan)
	if !strings.Contains(said, "COVERING INDEX questions_gaps") || strings.Contains(said, "TEMP B-TREE") {
		t.Errorf("the database goes another way: %s", said)
	}
}

// A job's topic is looked for among those of its project alone.
func TestTheTopicOfAJobIsFoundByAnIndex(t *testing.T) {
	c := catalogtest.Must(catalog.Open(t.Context(), catalogtest.SQLite(t), catalog.Options{}))(t)
	defer c.Close()
	var plan []struct {
		ID, Parent, Notused int
		Detail              string
	}
	if err := c.Read.NewRaw("EXPLAIN QUERY PLAN SELECT * FROM gaps WHERE project_id = 'docs' AND body ->> 'job' = 'job_1' AND state IN "+
		"('opening', 'job', 'merged') ORDER BY id LIMIT 1").Scan(t.Context(), &plan); err != nil {
		t.Fatal(err)
	}
	if said := fmt.Sprint(plan); strings.Contains(said, "SCAN") || !strings.Contains(said, "(project_id=?)") {
		t.Errorf("the database goes another way: %s", said)
	}
}

func TestQuestionMarksComeFromAnIndexAlone(t *testing.T) {
	c := catalogtest.Must(catalog.Open(t.Context(), catalogtest.SQLite(t), catalog.Options{}))(t)
	defer c.Close()
	var plan []struct {
		ID, Parent, Notused int
		Detail              string
	}
	if err := c.Read.NewRaw("EXPLAIN QUERY PLAN SELECT id, asked_at, outcome, rating FROM questions WHERE replaced = ? "+
		"AND project_id = 'docs' AND asked_at >= 1 ORDER BY asked_at DESC, id DESC LIMIT 9", false).
		Scan(t.Context(), &plan); err != nil {
		t.Fatal(err)
	}
	if said := fmt.Sprint(plan); !strings.Contains(said, "COVERING INDEX questions_asked") || strings.Contains(said, "TEMP") {
		t.Errorf("the database goes another way: %s", said)
	}
}

func TestGapsAreKeptOnceAndChangeOneAfterTheOther(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		ctx := t.Context()
		c := p.Open(catalog.Options{})
		catalogtest.AddProject(t, c, "docs")
		catalogtest.AddProject(t, c, "blog")
		g := api.Gap{Project: "docs", State: api.GapOpen, Anchor: "msg_1", Question: "Q?", Words: []string{"q"},
			Terms: map[string]float64{"q": 0.5}}
		kept := catalogtest.Must(c.KeepGap(ctx, g))(t)
		if again := catalogtest.Must(c.KeepGap(ctx, g))(t); !reflect.DeepEqual(again, kept) {
			t.Errorf("a second time: %+v, want %+v", again, kept)
		}
		if _, err := c.KeepGap(ctx, api.Gap{Project: "none", Anchor: "msg_1"}); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("of no project: %v", err)
		}
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				_, err := c.ChangeGap(ctx, "docs", kept.ID, func(g *api.Gap) error { g.Attempt++; return nil })
				if err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		now := time.Now().UTC().Truncate(time.Millisecond)
		catalogtest.Must(c.ChangeGap(ctx, "docs", kept.ID, func(g *api.Gap) error {
			g.State, g.MergedAt, g.Job = api.GapMerged, &now, "job_1"
			return nil
		}))(t)
		got := catalogtest.Must(c.Gap(ctx, "docs", kept.ID))(t)
		if got.Attempt != 8 || got.State != api.GapMerged || !got.MergedAt.Equal(now) || got.Terms["q"] != 0.5 {
			t.Errorf("it is %+v", got)
		}
		refuse := errors.New("no")
		if _, err := c.ChangeGap(ctx, "docs", kept.ID, func(*api.Gap) error { return refuse }); !errors.Is(err, refuse) {
			t.Errorf("a change that was refused: %v", err)
		}
		if _, err := c.Gap(ctx, "blog", kept.ID); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("another project sees it: %v", err)
		}
		if _, err := c.ChangeGap(ctx, "blog", kept.ID, func(*api.Gap) error { return nil }); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("another project changes it: %v", err)
		}
		if list := catalogtest.Must(c.Gaps(ctx, "docs", api.GapJob))(t); len(list) != 0 {
			t.Errorf("with a job: %+v", list)
		}
		if of := catalogtest.Must(c.GapOf(ctx, "docs", "job_1"))(t); of.ID != kept.ID {
			t.Errorf("of its job: %+v", of)
		}
		for project, job := range map[api.ProjectID]api.JobID{"docs": "job_2", "blog": "job_1"} {
			if of, err := c.GapOf(ctx, project, job); !errors.Is(err, api.ErrNotFound) {
				t.Errorf("%s of %s: %+v, %v", job, project, of, err)
			}
		}
		if list := catalogtest.Must(c.Gaps(ctx, "", api.GapMerged, api.GapJob))(t); len(list) != 1 {
			t.Errorf("of all projects: %+v", list)
		}
	})
}
