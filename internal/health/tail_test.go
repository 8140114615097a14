package health

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/slogtest"
	"time"
)

// The handler is one as log/slog asks for: groups, attributes of loggers, values that are resolved.
func TestTheTailIsAHandlerOfTheLog(t *testing.T) {
	tail := new(Tail)
	err := slogtest.TestHandler(tail.Handler(slog.LevelInfo), func() []map[string]any {
		var out []map[string]any
		records := tail.Newest(kept, slog.LevelInfo)
		for i := len(records) - 1; i >= 0; i-- { // the oldest first
			r := records[i]
			m := map[string]any{slog.LevelKey: r.Level, slog.MessageKey: r.Message}
			if !r.At.IsZero() {
				m[slog.TimeKey] = r.At
			}
			for _, f := range r.Fields {
				at, names := m, strings.Split(f.Name, ".")
				for _, group := range names[:len(names)-1] {
					if at[group] == nil {
						at[group] = map[string]any{}
					}
					at = at[group].(map[string]any)
				}
				at[names[len(names)-1]] = f.Value
			}
			out = append(out, m)
		}
		return out
	})
	if err != nil {
		t.Error(err)
	}
}

// A busy hour of requests does not push out the warning that came before it; of each kind the newest are kept.
func TestTheTailKeepsTheNewestRecordsAndTheWarningsAmongThem(t *testing.T) {
	tail := new(Tail)
	log := slog.New(tail.Handler(slog.LevelInfo))
	log.Debug("nobody keeps this")
	slog.New(tail.Handler(slog.LevelDebug)).Debug("nor this")
	slog.New(tail.Handler(slog.LevelError)).Warn("nor this, where the log is for errors alone")
	log.Warn("the disk is nearly full", "free", 12)
	for i := range 5*kept + 7 {
		log.Info("request", "n", i)
	}
	log.Error("the disk is full", "error", errors.New("no space"))
	all := tail.Newest(10*kept, slog.LevelInfo)
	if len(all) != kept+2 {
		t.Fatalf("%d records are kept", len(all))
	}
	first, second, last := all[0], all[1], all[len(all)-1]
	if first.Message != "the disk is full" || first.Fields[0] != (Field{"error", "no space"}) ||
		second.Fields[0] != (Field{"n", fmt.Sprint(5*kept + 6)}) || last.Message != "the disk is nearly full" {
		t.Errorf("first %v, second %v, last %v", first, second, last)
	}
	for i := 1; i < len(all); i++ {
		if all[i].Number >= all[i-1].Number {
			t.Fatalf("record %d is not before %d", all[i].Number, all[i-1].Number)
		}
	}
	if few := tail.Newest(3, slog.LevelWarn); len(few) != 2 || few[1].Message != last.Message {
		t.Errorf("warnings: %v", few)
	}
}

// What a record points to may change after it was logged: the tail keeps what the log said.
func TestTheTailKeepsWhatWasSaidAtThatMoment(t *testing.T) {
	tail := new(Tail)
	changing := &struct{ Name string }{"before"}
	slog.New(tail.Handler(slog.LevelInfo)).With("with", changing).Info("m", "any", changing, slog.Group("g", "in", changing))
	changing.Name = "after"
	for _, f := range tail.Newest(1, slog.LevelInfo)[0].Fields {
		if !strings.Contains(f.Value, "before") {
			t.Errorf("%s is %q", f.Name, f.Value)
		}
	}
}

func TestFollowersOfTheTailHearOfNewRecordsAndHoldNobodyUp(t *testing.T) {
	tail := new(Tail)
	log := slog.New(tail.Handler(slog.LevelInfo))
	changes, stop := tail.Follow()
	for range 10 { // nobody reads: the log goes on
		log.Info("m")
	}
	<-changes
	select {
	case <-changes:
		t.Error("told twice of what one look shows")
	default:
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				log.Info("m")
				tail.Newest(3, slog.LevelInfo)
			}
		})
	}
	all.Wait()
	<-changes
	stop()
	log.Info("m")
	select {
	case <-changes:
		t.Error("told after it has stopped")
	default:
	}
}

func TestTheDiskOfADirectory(t *testing.T) {
	d, err := DiskOf(t.TempDir())
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil || d.Total == 0 || d.Free == 0 || d.Free > d.Total {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := DiskOf(t.TempDir() + "/missing"); err == nil {
		t.Error("a directory that is not there has a disk")
	}
}

// BenchmarkRequestLine compares a request's line in the log alone with one that the tail keeps as well.
func BenchmarkRequestLine(b *testing.B) {
	text := slog.NewTextHandler(io.Discard, nil)
	for name, h := range map[string]slog.Handler{"log": text, "log and tail": slog.NewMultiHandler(text, new(Tail).Handler(slog.LevelInfo))} {
		b.Run(name, func(b *testing.B) {
			log := slog.New(h)
			b.ReportAllocs()
			for b.Loop() {
				log.LogAttrs(b.Context(), slog.LevelInfo, "request", slog.String("request", "req_1"),
					slog.String("method", "POST"), slog.String("route", "/x"), slog.Int("status", 200),
					slog.Duration("took", time.Millisecond), slog.Int64("bytes", 12), slog.String("client", "::1"))
			}
		})
	}
}
