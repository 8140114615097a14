package work_test

import (
	"testing"
	"time"

	"docent/api"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
)

func TestWrittenQuestionsAreKeptOnceAndCounted(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		now := time.Date(2026, 11, 28, 23, 0, 0, 0, time.UTC)
		c := p.Open(catalog.Options{Now: func() time.Time { return now }})
		keep := func(key, question string) {
			t.Helper()
			if err := c.KeepWritten(t.Context(), "docs", api.WrittenSection{Key: key, Questions: []string{question}, Model: "m"}, 700, 90); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.ChangeWrittenState(t.Context(), "docs", func(s *api.WrittenState) { s.Sections = 3 }); err != nil {
			t.Fatal(err)
		}
		keep("aa", "Why?")
		keep("aa", "Why not?") // as after a crash between the reply and the commit
		keep("bb", "How?")
		list, err := c.WrittenQuestions(t.Context(), []string{"aa", "bb", "cc"})
		if err != nil || len(list) != 2 || list[0].Questions[0] == "Why not?" || list[1].Questions[0] == "Why not?" {
			t.Errorf("kept are %+v, %v", list, err)
		}
		state := catalogtest.Must(c.WrittenState(t.Context(), "docs"))(t)
		if state.Asked != 3 || state.Tokens != 2100 || state.Cost != 270 || state.Written != 3 || state.Sections != 3 {
			t.Errorf("the state is %+v", state)
		}
		day := catalogtest.Must(c.WrittenState(t.Context(), api.EveryIndex))(t)
		if day.Day != "2026-11-28" || day.DayTokens != 2100 || day.DayCost != 270 {
			t.Errorf("of the day is known %+v", day)
		}
		now = now.Add(2 * time.Hour)
		keep("cc", "Where?")
		if day = catalogtest.Must(c.WrittenState(t.Context(), api.EveryIndex))(t); day.Day != "2026-11-29" || day.DayCost != 90 {
			t.Errorf("of the next day is known %+v", day)
		}
		// What no index has is kept for three months.
		now = now.AddDate(0, 0, 60)
		if err := c.UseWritten(t.Context(), []string{"aa"}); err != nil {
			t.Fatal(err)
		}
		now = now.AddDate(0, 0, 40)
		if err := c.SweepWritten(t.Context()); err != nil {
			t.Fatal(err)
		}
		if list = catalogtest.Must(c.WrittenQuestions(t.Context(), []string{"aa", "bb", "cc"}))(t); len(list) != 1 || list[0].Key != "aa" {
			t.Errorf("left are %+v", list)
		}
		if none := catalogtest.Must(c.WrittenState(t.Context(), "other"))(t); none != (api.WrittenState{Index: "other"}) {
			t.Errorf("of another index is known %+v", none)
		}
	})
}
