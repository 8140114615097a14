package thread

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"docent/api"
	"docent/internal/backoff"
	"docent/search"
)

// An unindexed project has no index until it was made.
type unindexed struct {
	shunned
	takes    time.Duration // to make the index
	fails    int           // attempts to make it that fail first; all if negative
	useless  bool          // what is made cannot be used
	made     bool
	attempts int
	holding  []int // slots that were held while it was made
}

func (u *unindexed) Search(ctx context.Context, id api.ProjectID, q search.Query) ([]search.Hit, error) {
	if !u.made || u.useless {
		return nil, fmt.Errorf("%w: made by version 2.1, this is 3.1", search.ErrNotIndexed)
	}
	return u.shunned.Search(ctx, id, q)
}

func (u *unindexed) Indexed(ctx context.Context, _ api.ProjectID) error {
	u.attempts++
	u.holding = append(u.holding, u.inside)
	if u.fails != 0 {
		u.fails--
		return errors.New("the folder is not there")
	}
	if err := backoff.Sleep(ctx, u.takes); err != nil {
		return err
	}
	u.made = true
	return nil
}

func (u *unindexed) actor(t *testing.T, ctx context.Context) *Actor {
	a := u.shunned.actor(t, ctx, time.Minute)
	a.deps.Searcher = u
	return a
}

func TestAQuestionWaitsForAnIndexThatIsMadeAnew(t *testing.T) {
	for _, c := range []struct {
		name     string
		index    unindexed
		after    time.Duration
		attempts int
		failure  bool
	}{
		{name: "soon", index: unindexed{takes: time.Second}, after: time.Second, attempts: 1},
		{name: "for longer than a turn may take", index: unindexed{takes: 20 * time.Minute}, after: 20 * time.Minute,
			attempts: 1},
		{name: "that cannot be made at first", index: unindexed{takes: time.Second, fails: 4}, after: 21 * time.Second,
			attempts: 5},
		{name: "not where it cannot be made", index: unindexed{fails: -1}, after: 30 * time.Second, attempts: 7,
			failure: true},
		{name: "not where it is of no use", index: unindexed{useless: true}, attempts: 3, failure: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := &c.index
				a := u.actor(t, t.Context())
				var turn Turn
				a.Command(*opens("1", "why").Ask, func(v any, err error) {
					if err != nil {
						t.Fatal(err)
					}
					turn = v.(Turn)
				})
				ended := u.run()
				synctest.Wait()
				if !prepared(turn) {
					t.Error("others wait for a turn that waits for an index")
				}
				<-ended
				if took := time.Since(u.began); took != c.after || u.attempts != c.attempts {
					t.Errorf("waited %v for %d attempts, want %v for %d", took, u.attempts, c.after, c.attempts)
				}
				for _, n := range u.holding {
					if n != 0 {
						t.Errorf("slots held while the index was made: %v", u.holding)
					}
				}
				u.hear(a)
				if e, _ := a.State.newest(); !e.Done || (e.Error != "") != c.failure || !c.failure && e.Answer != "Because." {
					t.Errorf("the turn ended as %+v", e)
				}
				if u.inside != 0 {
					t.Errorf("%d slots are held", u.inside)
				}
			})
		})
	}
}

// Stopping the service stops the waiting, and the next service answers.
func TestAQuestionThatWaitsForItsIndexOutlivesTheService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &unindexed{takes: time.Minute}
		ctx, stop := context.WithCancel(t.Context())
		a := u.actor(t, ctx)
		u.ask(t, a)
		ended := u.run()
		synctest.Wait()
		stop()
		<-ended
		if len(u.messages) != 0 || u.inside != 0 {
			t.Errorf("a run that was stopped says %v and holds %d slots", u.messages, u.inside)
		}
		next := u.actor(t, t.Context())
		ended = u.run()
		synctest.Wait()
		u.hear(next)
		<-ended
		u.hear(next)
		if e, _ := next.State.newest(); e.Answer != "Because." {
			t.Errorf("after the restart the turn ended as %+v", e)
		}
	})
}
