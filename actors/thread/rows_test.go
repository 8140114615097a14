package thread

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"docent/api"
	"docent/persistence/journal"
)

// What the changes bring, put into what was there, is what the whole thread says; and a long thread's next question is
// made from its own events.
func TestRowsOfAThreadFollowItsChanges(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		var rows Rows
		var rec journal.Recovered
		listed := map[api.TurnID]api.QuestionRow{}
		s := state{id: testID}
		now := time.Unix(1e9, 0).UTC()
		parts, turns, taken := 0, 0, 0
		commit := func(events []Event, err error) {
			if err != nil {
				return
			}
			for _, ev := range events {
				stored, err := codec.Encode(ev)
				if err != nil {
					t.Fatal(err)
				}
				rec.Events, rec.Seq = append(rec.Events, stored), rec.Seq+1
				s = s.apply(ev)
			}
		}
		for range 60 {
			now = now.Add(time.Second)
			switch n := random.IntN(10); {
			case n < 3 || !s.opened:
				turns++
				ask := opens(fmt.Sprint(turns), fmt.Sprint("question ", turns))
				ask.New = !s.opened
				if turns := s.conversation().Turns; len(turns) > 0 && random.IntN(5) == 0 {
					ask.Regenerate, ask.Instead = true, string(turns[max(0, len(turns)-1-random.IntN(3))].Turn)
				}
				commit(s.decide(ask, now))
			case n < 8:
				commit(s.decide(turnDone{attempt: s.attempt, text: fmt.Sprint("answer at ", now)}, now))
			case n < 9 && len(s.done) > 0:
				e := s.done[random.IntN(len(s.done))]
				commit(s.decide(Rate{Project: api.Project{ID: "p"}, Turn: e.Turn, Rating: api.RatedUp, Comment: fmt.Sprint(now)},
					now))
			}
			if random.IntN(3) == 0 {
				continue // the listing comes later
			}
			row, ok := rows.Changed(testID, uint64(taken)+1, rec.Events[taken:])
			if ok {
				parts++
				if row.Part != (taken > 0) {
					t.Fatalf("a row of the events from %d on is a part: %v", taken+1, row.Part)
				}
			} else {
				whole, found, err := rows.Whole(testID, rec)
				if err != nil || !found {
					t.Fatal(found, err)
				}
				if row = whole; row.Part {
					t.Fatal("a whole row says that it is a part")
				}
				clear(listed)
			}
			taken = len(rec.Events)
			for _, q := range row.Questions {
				listed[q.ID] = q
			}
			want, _, err := new(Rows).Whole(testID, rec)
			if err != nil {
				t.Fatal(err)
			}
			if len(want.Questions) != len(listed) {
				t.Fatalf("seed %d: %d are listed, not %d", seed, len(listed), len(want.Questions))
			}
			for _, q := range want.Questions {
				if !reflect.DeepEqual(listed[q.ID], q) {
					t.Fatalf("seed %d: listed is\n%+v, not\n%+v", seed, listed[q.ID], q)
				}
			}
		}
		if parts < 5 {
			t.Errorf("seed %d: only %d rows were made of changes", seed, parts)
		}
	}
}

func TestRowsAreNotMadeOfEventsThatDoNotFollow(t *testing.T) {
	var rows Rows
	s := state{id: testID}
	var rec journal.Recovered
	for n := range 3 {
		ask := opens(fmt.Sprint(n), "why")
		ask.New = n == 0
		events, err := s.decide(ask, time.Unix(1e9, 0).UTC())
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range events {
			stored, err := codec.Encode(ev)
			if err != nil {
				t.Fatal(err)
			}
			rec.Events, rec.Seq = append(rec.Events, stored), rec.Seq+1
			s = s.apply(ev)
		}
	}
	first := journal.Recovered{Seq: 3, Events: slices.Clone(rec.Events[:3])}
	if _, _, err := rows.Whole(testID, first); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		first  uint64
		events []journal.Event
	}{
		"none": {4, nil}, "a gap": {5, rec.Events[3:]}, "known ones": {3, rec.Events[2:]},
		"of another form": {4, []journal.Event{{Type: "x"}}},
	} {
		if row, ok := rows.Changed(testID, c.first, c.events); ok {
			t.Errorf("%s: %+v", name, row)
		}
	}
	if _, ok := rows.Changed("thr_other", 2, rec.Events[1:]); ok {
		t.Error("a thread whose beginning nobody has seen")
	}
	if _, ok := rows.Changed(testID, 4, rec.Events[3:]); !ok {
		t.Error("the next events are not taken")
	}
}
