package model_test

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
)

func scripted(s model.Script) model.Named {
	return model.Named{Name: "load", Provider: model.Scripted, Script: s}
}

func TestAScriptIsWrittenOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := registry(t, scripted(model.Script{First: 300 * time.Millisecond, Rate: 50, Parts: 200}))
		begin := time.Now()
		n := 0
		result, err := r.Answer(t.Context(), "load", request, func(d model.Delta) error {
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
		r := registry(t, scripted(model.Script{Rate: 10, Parts: 50}))
		begin := time.Now()
		n := 0
		_, err := r.Answer(t.Context(), "load", request, func(model.Delta) error {
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
		var models []model.Named
		for i := range 20 {
			n := scripted(model.Script{First: time.Duration(i*i) * 97 * time.Millisecond, Rate: 0.13 + float64(i*i), Parts: 20})
			n.Name = fmt.Sprint(i)
			models = append(models, n)
		}
		r, err := model.New(model.Config{Models: models})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(12345 * time.Microsecond)
		var wg sync.WaitGroup
		for i := range 200 {
			script := models[i%20].Script
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 777 * time.Microsecond)
				begin := time.Now()
				n := 0
				_, err := r.Answer(t.Context(), fmt.Sprint(i%20), request, func(model.Delta) error {
					due := script.First + time.Duration(float64(n)/script.Rate*float64(time.Second))
					if late := time.Since(begin) - due; late < 0 || late > max(time.Millisecond, min(5*time.Millisecond, time.Duration(float64(time.Second)/script.Rate/8))) {
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
		r := registry(t, scripted(model.Script{Rate: 1, Parts: 10}))
		begin := time.Now()
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i+1)*150*time.Millisecond)
				defer cancel()
				_, err := r.Answer(ctx, "", request, func(model.Delta) error { return nil })
				if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Duration(i+1)*150*time.Millisecond {
					t.Errorf("%d: %v after %v", i, err, time.Since(begin))
				}
			})
		}
		n := 0
		if _, err := r.Answer(t.Context(), "", request, func(model.Delta) error { n++; return nil }); err != nil || n != 10 {
			t.Errorf("%d parts, %v", n, err)
		}
		wg.Wait()
	})
}

func TestAPanicOfEmitIsItsAskersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := registry(t, scripted(model.Script{Rate: 10, Parts: 5}))
		var wg sync.WaitGroup
		wg.Go(func() {
			defer func() {
				if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), "the third") {
					t.Errorf("panic: %v", v)
				}
			}()
			n := 0
			_, err := r.Answer(t.Context(), "", request, func(model.Delta) error {
				if n++; n == 3 {
					panic("the third")
				}
				return nil
			})
			t.Errorf("came back with %v", err)
		})
		n := 0
		if _, err := r.Answer(t.Context(), "", request, func(model.Delta) error { n++; return nil }); err != nil || n != 5 {
			t.Errorf("%d parts, %v", n, err)
		}
		wg.Wait()
	})
}

// In real time, where those who go to sleep and what wakes them run at once: nobody sleeps on, and nobody is early.
func TestNobodyIsForgottenInACrowdOfScripts(t *testing.T) {
	r := registry(t, scripted(model.Script{First: 3 * time.Millisecond, Rate: 700, Jitter: 2 * time.Millisecond, Parts: 60}))
	var wg sync.WaitGroup
	for i := range 400 {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			begin := time.Now()
			n := 0
			_, err := r.Answer(ctx, "load", request, func(model.Delta) error {
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
	r := registry(t, scripted(model.Script{Parts: 5, Text: "one two"}))
	var got collected
	if _, err := r.Answer(t.Context(), "", request, got.emit); err != nil || got.text != "one two one two one " || got.deltas != 5 {
		t.Errorf("%+v, %v", got, err)
	}
}

// How late parts are, and what they cost in processor time, with many scripted answers at once.
func BenchmarkScripted(b *testing.B) {
	for _, streams := range []int{1000, 20_000} {
		b.Run(fmt.Sprintf("streams=%d", streams), func(b *testing.B) {
			const parts, rate = 20, 10
			r, err := model.New(model.Config{Models: []model.Named{scripted(model.Script{First: 100 * time.Millisecond, Rate: rate, Parts: parts})}})
			if err != nil {
				b.Fatal(err)
			}
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
						_, _ = r.Answer(context.Background(), "load", model.Request{}, func(model.Delta) error {
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

func TestConfigurationsThatCannotWorkAreRefused(t *testing.T) {
	for name, c := range map[string]model.Config{
		"no name":           {Models: []model.Named{{Provider: model.Builtin}}},
		"no provider":       {Models: []model.Named{{Name: "a"}}},
		"unknown provider":  {Models: []model.Named{{Name: "a", Provider: "magic"}}},
		"twice":             {Models: []model.Named{{Name: "a", Provider: model.Builtin}, {Name: "a", Provider: model.Builtin}}},
		"unknown default":   {Default: "a"},
		"no model":          {Models: []model.Named{{Name: "a", Provider: model.OpenAI, Key: secret}}},
		"no key":            {Models: []model.Named{{Name: "a", Provider: model.Anthropic, Model: "m"}}},
		"no address":        {Models: []model.Named{{Name: "a", Provider: model.OpenAI, Model: "m", BaseURL: "localhost:1234"}}},
		"a file":            {Models: []model.Named{{Name: "a", Provider: model.OpenAI, Model: "m", BaseURL: "file:///etc/passwd"}}},
		"a key in the URL":  {Models: []model.Named{{Name: "a", Provider: model.OpenAI, Model: "m", BaseURL: "https://u:" + secret + "@host/v1"}}},
		"no room":           {Models: []model.Named{{Name: "a", Provider: model.OpenAI, Model: "m", Key: secret, Window: 2000, MaxTokens: 1500}}},
		"a negative script": {Models: []model.Named{scripted(model.Script{Rate: -1})}},
		"an endless script": {Models: []model.Named{scripted(model.Script{Parts: 1 << 40})}},
	} {
		if _, err := model.New(c); err == nil {
			t.Errorf("%s: taken", name)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the key shows: %v", name, err)
		}
	}
}
