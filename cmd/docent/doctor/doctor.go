// Package doctor looks for what is wrong with an installation: a list of checks that are made at the same time, each
// within its own limit, and the report of what they found. A check says in a sentence what it found and, where that is
// not as it should be, what to do, as a command to type where there is one. Nothing that it says holds a secret.
//
// The checks of the machine (the data directory and its disk, limits, the clock) and of the way to the server (its
// public address, proxies, certificates) are here; those that need the stores and the models are their caller's.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"docent/internal/background"
	"docent/internal/brief"
)

// A Status is what a check says of what it looked at.
type Status string

const (
	OK      Status = "ok"
	Warning Status = "warning" // it works, and will not for ever or not for everybody
	Problem Status = "problem" // it does not work
	Skipped Status = "skipped" // it was not looked at, and Found says why
)

// A Finding is what one check says of one thing.
type Finding struct {
	Check  string `json:"check"`
	About  string `json:"about,omitempty"` // which of several: a project, a model
	Status Status `json:"status"`
	Found  string `json:"found"`
	Fix    string `json:"fix,omitempty"`
}

// Fine is a finding of what is as it should be.
func Fine(found string, args ...any) Finding {
	return Finding{Status: OK, Found: fmt.Sprintf(found, args...)}
}

// Doubt is a warning.
func Doubt(fix, found string, args ...any) Finding {
	return Finding{Status: Warning, Fix: fix, Found: fmt.Sprintf(found, args...)}
}

// Wrong is a problem.
func Wrong(fix, found string, args ...any) Finding {
	return Finding{Status: Problem, Fix: fix, Found: fmt.Sprintf(found, args...)}
}

// Left says why something was not looked at.
func Left(why string, args ...any) Finding {
	return Finding{Status: Skipped, Found: fmt.Sprintf(why, args...)}
}

// Of says which of several things a finding is about.
func (f Finding) Of(about string) Finding {
	f.About = about
	return f
}

// A Check looks at one thing.
type Check struct {
	Name  string
	Limit time.Duration // 15 seconds if zero
	Run   func(ctx context.Context) []Finding
}

// One is a check with one finding.
func One(name string, run func(ctx context.Context) Finding) Check {
	return Check{Name: name, Run: func(ctx context.Context) []Finding { return []Finding{run(ctx)} }}
}

const usualLimit = 15 * time.Second

// A Report is what all checks found, in their order.
type Report struct {
	Findings []Finding `json:"findings"`
	Problems int       `json:"problems"`
	Warnings int       `json:"warnings"`
	OK       bool      `json:"ok"` // there is no problem
	Seconds  float64   `json:"seconds"`
}

// Examine makes all checks at the same time. One that does not end within its limit is a problem itself and is left
// behind.
func Examine(ctx context.Context, checks []Check) Report {
	began := time.Now()
	found := make([][]Finding, len(checks))
	var all background.Work
	for i, check := range checks {
		all.Go("cmd/docent/doctor.Examine", func() { found[i] = check.within(ctx) })
	}
	all.Wait()
	r := NewReport(slices.Concat(found...))
	r.Seconds = time.Since(began).Seconds()
	return r
}

// NewReport counts findings.
func NewReport(findings []Finding) Report {
	r := Report{Findings: findings}
	for _, f := range findings {
		switch f.Status {
		case Problem:
			r.Problems++
		case Warning:
			r.Warnings++
		}
	}
	r.OK = r.Problems == 0
	return r
}

func (c Check) within(ctx context.Context) []Finding {
	limit := cmp.Or(c.Limit, usualLimit)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	done := make(chan []Finding, 1)
	background.Go("cmd/docent/doctor.within", func() {
		defer func() {
			if broken := recover(); broken != nil {
				done <- []Finding{Wrong("report it, with this line", "the check itself is broken: %v", broken)}
			}
		}()
		done <- c.Run(ctx)
	})
	var found []Finding
	select {
	case found = <-done:
	case <-ctx.Done():
		select { // what ends with its limit says more than the limit
		case found = <-done:
		case <-time.After(time.Second):
			found = []Finding{Wrong("", "it did not end within %s", limit)}
		}
	}
	for i := range found {
		found[i].Check = cmp.Or(found[i].Check, c.Name)
	}
	return found
}

// Print writes a report for people: what is not as it should be with its fix, what is in one line each.
func (r Report) Print(w io.Writer, colors bool) error {
	width := 0
	name := func(f Finding) string { return strings.TrimSpace(f.Check + " " + f.About) }
	for _, f := range r.Findings {
		width = max(width, len([]rune(name(f))))
	}
	marks := map[Status]string{OK: "ok     ", Warning: "WARNING", Problem: "PROBLEM", Skipped: "skipped"}
	if colors {
		for status, color := range map[Status]string{OK: "32", Warning: "33", Problem: "31", Skipped: "2"} {
			marks[status] = "\x1b[" + color + "m" + marks[status] + "\x1b[0m"
		}
	}
	for _, f := range r.Findings {
		if _, err := fmt.Fprintf(w, "%s  %-*s  %s\n", marks[f.Status], width, name(f), f.Found); err != nil {
			return err
		}
		if f.Fix != "" {
			if _, err := fmt.Fprintf(w, "%*s  fix: %s\n", width+9, "", f.Fix); err != nil {
				return err
			}
		}
	}
	_, err := fmt.Fprintf(w, "\n%s: %s, %s\n", brief.Count(len(r.Findings), "check"), brief.Count(r.Problems, "problem"),
		brief.Count(r.Warnings, "warning"))
	return err
}
