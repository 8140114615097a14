package scripted_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"docent/model"
	"docent/model/scripted"
)

var request = model.Request{Question: "How do I start it?",
	Passages: []model.Passage{{Title: "Start"}, {Title: "Stop"}}}

func open(t testing.TB, s scripted.Script) *scripted.Model {
	t.Helper()
	m, err := scripted.New("load", s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAScriptIsWrittenOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, scripted.Script{First: 300 * time.Millisecond, Rate: 50, Parts: 200})
		begin := time.Now()
		n := 0
		result, err := m.Answer(t.Context(), request, func(d model.Delta) error {
			due := 300*time.Millisecond + time.Duration(n)*20*time.Millisecond
			if late := time.Since(begin) - due; late < 0 || late > 2500*time.Microsecond {
				t.Errorf("part %d is %v late", n, late)
			}
			if d.Text != fmt.Sprintf("part-%d ", n) {
				t.Errorf("part %d is %q", n, d.Text)
			}
			if (n == 0) != (len(d.Cite) > 0) {
				t.Errorf("part %d cites %v", n, d.Cite)
			}
			n++
			return nil
		})
		if err != nil || n != 200 || result.Reason != "stop" || !result.Answered || result.CompletionTokens != 200 {
			t.Errorf("%d parts, %+v, %v", n, result, err)
		}
	})
}

func TestAScriptThatFellBehindCatchesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, scripted.Script{Rate: 10, Parts: 50})
		begin := time.Now()
		n := 0
		_, err := m.Answer(t.Context(), request, func(model.Delta) error {
			if n++; n == 10 {
				time.Sleep(2 * time.Second) // the reader's side stalls
			}
			return nil
		})
		if took := time.Since(begin); err != nil || took < 4900*time.Millisecond || took > 4901*time.Millisecond {
			t.Errorf("took %v, %v: the last part is due after 4.9s", took, err)
		}
	})
}

func TestScriptsOfManyPacesRunAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var scripts []scripted.Script
		var models []*scripted.Model
		for i := range 20 {
			s := scripted.Script{First: time.Duration(i*i) * 97 * time.Millisecond, Rate: 0.13 + float64(i*i), Parts: 20}
			scripts, models = append(scripts, s), append(models, open(t, s))
		}
		time.Sleep(12345 * time.Microsecond)
		var wg sync.WaitGroup
		for i := range 200 {
			script := scripts[i%20]
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 777 * time.Microsecond)
				begin := time.Now()
				n := 0
				_, err := models[i%20].Answer(t.Context(), request, func(model.Delta) error {
					due := script.First + time.Duration(float64(n)/script.Rate*float64(time.Second))
					if late := time.Since(begin) - due; late < 0 ||
						late > max(time.Millisecond, min(5*time.Millisecond, time.Duration(float64(time.Second)/script.Rate/8))) {
						t.Errorf("%d: part %d is %v late", i, n, late)
					}
					n++
					return nil
				})
				if err != nil || n != 20 {
					t.Errorf("%d: %d parts, %v", i, n, err)
				}
			})
		}
		wg.Wait()
	})
}

func TestACancelledScriptEndsAtOnceAndTheOthersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, scripted.Script{Rate: 1, Parts: 10})
		begin := time.Now()
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i+1)*150*time.Millisecond)
				defer cancel()
				_, err := m.Answer(ctx, request, func(model.Delta) error { return nil })
				if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Duration(i+1)*150*time.Millisecond {
					t.Errorf("%d: %v after %v", i, err, time.Since(begin))
				}
			})
		}
		n := 0
		if _, err := m.Answer(t.Context(), request, func(model.Delta) error { n++; return nil }); err != nil || n != 10 {
			t.Errorf("%d parts, %v", n, err)
		}
		wg.Wait()
	})
}

func TestAPanicOfEmitIsItsAskersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, scripted.Script{Rate: 10, Parts: 5})
		var wg sync.WaitGroup
		wg.Go(func() {
			defer func() {
				if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), "the third") {
					t.Errorf("panic: %v", v)
				}
			}()
			n := 0
			_, err := m.Answer(t.Context(), request, func(model.Delta) error {
				if n++; n == 3 {
					panic("the third")
				}
				return nil
			})
			t.Errorf("came back with %v", err)
		})
		n := 0
		if _, err := m.Answer(t.Context(), request, func(model.Delta) error { n++; return nil }); err != nil || n != 5 {
			t.Errorf("%d parts, %v", n, err)
		}
		wg.Wait()
	})
}

// In real time, when timers are set and fired at once: none is forgotten, and none is early.
func TestNoPieceOfManyScriptsIsForgotten(t *testing.T) {
	m := open(t, scripted.Script{First: 3 * time.Millisecond, Rate: 700, Jitter: 2 * time.Millisecond, Parts: 60})
	var wg sync.WaitGroup
	for i := range 400 {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			begin := time.Now()
			n := 0
			_, err := m.Answer(ctx, request, func(model.Delta) error {
				if due := 3*time.Millisecond + time.Duration(n)*time.Second/700 - time.Microsecond; time.Since(begin) < due {
					t.Errorf("part %d comes before its time", n)
				}
				if n++; i%7 == 0 && n == 30 {
					cancel()
				}
				return nil
			})
			if want := map[bool]int{true: 30, false: 60}[i%7 == 0]; n != want || (err != nil) != (want == 30) {
				t.Errorf("%d parts, %v", n, err)
			}
		})
	}
	wg.Wait()
}

func TestTheWordsOfAScriptComeAgain(t *testing.T) {
	m := open(t, scripted.Script{Parts: 5, Text: "one two"})
	var got []string
	_, err := m.Answer(t.Context(), request, func(d model.Delta) error {
		got = append(got, d.Text)
		return nil
	})
	if err != nil || strings.Join(got, "") != "one two one two one " || len(got) != 5 {
		t.Errorf("%q, %v", got, err)
	}
}

// How late parts are, and what they cost in processor time, with many scripted answers at once.
func BenchmarkScripted(b *testing.B) {
	for _, streams := range []int{1000, 20_000} {
		b.Run(fmt.Sprintf("streams=%d", streams), func(b *testing.B) {
			const parts, rate = 20, 10
			m := open(b, scripted.Script{First: 100 * time.Millisecond, Rate: rate, Parts: parts})
			var worst, total, rounds atomic.Int64
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for b.Loop() {
				rounds.Add(1)
				var wg sync.WaitGroup
				for range streams {
					wg.Go(func() {
						begin := time.Now()
						n := 0
						_, _ = m.Answer(context.Background(), model.Request{}, func(model.Delta) error {
							late := int64(time.Since(begin) - 100*time.Millisecond - time.Duration(n)*time.Second/rate)
							total.Add(late)
							if late > worst.Load() {
								worst.Store(late)
							}
							n++
							return nil
						})
					})
				}
				wg.Wait()
			}
			runtime.ReadMemStats(&after)
			all := float64(rounds.Load()) * float64(streams) * parts
			b.ReportMetric(float64(total.Load())/all/1e6, "ms-late/part")
			b.ReportMetric(float64(worst.Load())/1e6, "ms-late-worst")
			b.ReportMetric(float64(after.Mallocs-before.Mallocs)/all, "allocs/part")
		})
	}
}

func TestAScriptedModelSaysItsRepliesInTurn(t *testing.T) {
	m := open(t, scripted.Script{Replies: []model.Reply{{Calls: []model.Call{{Name: "read", Arguments: "{}"}}},
		{Text: "Done."}}})
	first, err := m.Chat(t.Context(), model.Chat{Turns: []model.Turn{{Role: "user", Text: "Go."}}})
	if err != nil || first.Reason != "tools" || len(first.Calls) != 1 || first.Calls[0].ID == "" || first.Model != "load" {
		t.Fatalf("%+v, %v", first, err)
	}
	for turns := 1; turns < 4; turns++ {
		c := model.Chat{}
		for range turns {
			c.Turns = append(c.Turns, model.Turn{Role: "assistant", Calls: first.Calls},
				model.Turn{Role: "tool", CallID: first.Calls[0].ID})
		}
		if then, err := m.Chat(t.Context(), c); err != nil || then.Text != "Done." || then.Reason != "stop" {
			t.Errorf("%+v, %v", then, err)
		}
	}
}
