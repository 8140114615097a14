package console

import (
	"strconv"
	"time"

	"docent/api"
	"docent/internal/brief"
	"docent/persistence/catalog"
	"docent/site/markup"
)

// Shorten returns the beginning of a text, on one line.
func Shorten(most int, text string) string {
	return brief.Runes(brief.Line(text), most, "…")
}

// plainText is the beginning of a text in Markdown as its readers see it, without marks.
func plainText(text string) string {
	src := []byte("\n" + brief.Runes(text, 1000, "…"))
	return markup.Parse("text.md", src).Plain(markup.Span{Start: 1, End: len(src)})
}

// partOf is a part of a whole in words; empty if there is no whole.
func partOf(part, whole int) string {
	if whole == 0 {
		return "–"
	}
	return PercentOf(part, whole) + "%"
}

// PercentOf returns a part of a whole in percent; empty if there is no whole.
func PercentOf(part, whole int) string {
	if whole == 0 {
		return ""
	}
	return strconv.FormatFloat(100*float64(part)/float64(whole), 'f', 0, 64)
}

// gapWords says a topic's state in words.
func gapWords(state api.GapState) string {
	return map[api.GapState]string{api.GapOpen: "open", api.GapOpening: "job being opened", api.GapJob: "job open",
		api.GapMerged: "merged", api.GapDismissed: "dismissed"}[state]
}

// gapBadge is the class of its badge.
func gapBadge(state api.GapState) string {
	return map[api.GapState]string{api.GapOpen: "warn", api.GapOpening: "info", api.GapJob: "info",
		api.GapMerged: "ok"}[state]
}

// A Badge is a word that stands out.
type Badge struct{ Text, Class string }

// JobState is a job's state, in a word, and the class of its badge.
func JobState(r api.JobRow) Badge {
	switch {
	case r.Job.Status == api.JobActive:
		return Badge{Text: "working", Class: "info"}
	case r.Halt == api.HaltInterrupted:
		return Badge{Text: "cancelled", Class: ""}
	case r.Job.Status == api.JobFailed:
		return Badge{Text: "failed", Class: "bad"}
	}
	switch r.Job.Outcome {
	case api.OutcomeChanged:
		if r.DryRun {
			return Badge{Text: "tried", Class: "ok"}
		}
		return Badge{Text: "changed", Class: "ok"}
	case api.OutcomeNothingToDo:
		return Badge{Text: "nothing to do", Class: ""}
	case api.OutcomeNotUnderstood:
		return Badge{Text: "not understood", Class: "warn"}
	case api.OutcomeNeedsDetail:
		return Badge{Text: "needs detail", Class: "warn"}
	}
	return Badge{Text: "completed", Class: "ok"}
}

// AnsweredPercent returns which part of the questions that came to an end was answered, in percent; -1 if there were
// none.
func AnsweredPercent(d catalog.Day) int {
	if ended := d.Answered + d.Unanswered + d.Failed; ended > 0 {
		return (100*d.Answered + ended/2) / ended
	}
	return -1
}

// A Concern is something that needs somebody, with the place where it is fixed.
type Concern struct {
	Bad  bool // it has already cost something; else it may
	Text string
	Path string // where it is fixed; empty if that is elsewhere
	Do   string // what the link says
}

// WorstFirst compares concerns for slices.SortStableFunc.
func WorstFirst(a, b Concern) int {
	switch {
	case a.Bad == b.Bad:
		return 0
	case a.Bad:
		return -1
	}
	return 1
}

// FormatBytes returns a number of bytes as people read it.
func FormatBytes(n uint64) string {
	if n < 1024 {
		return brief.Count(int(n), "byte")
	}
	value, units := float64(n)/1024, []string{"KiB", "MiB", "GiB", "TiB", "PiB"}
	for value >= 1024 && len(units) > 1 {
		value, units = value/1024, units[1:]
	}
	return strconv.FormatFloat(value, 'f', 1, 64) + " " + units[0]
}

// FormatSeconds returns a time as people read it: as long as it is short, to the tenth of a millisecond.
func FormatSeconds(v float64) string {
	d := time.Duration(v * float64(time.Second))
	switch {
	case d >= 48*time.Hour:
		return brief.Count(int(d/(24*time.Hour)), "day")
	case d >= time.Minute:
		return d.Round(time.Minute).String()[:len(d.Round(time.Minute).String())-2] // without its "0s"
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(100 * time.Microsecond).String()
}
