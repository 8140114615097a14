package edit

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"docent/agent/pages"
	"docent/agent/say"
	"docent/site/markup"
)

// Lines replaces whole lines of one page, as a reviewer suggests. They are found by what stands in them: by their number
// only if they stand there several times.
type Lines struct {
	To       int // number of the last line
	Old, New string
	Located
}

func (o *Lines) Todo() string {
	n := strings.Count(strings.TrimRight(o.Old, "\n"), "\n")
	return fmt.Sprintf("Replace %s%s", numbered(o.To-n, o.To), o.Scope.describe())
}

// numbered names lines.
func numbered(from, to int) string {
	if from >= to {
		return fmt.Sprintf("line %d", to)
	}
	return fmt.Sprintf("lines %d to %d", from, to)
}

func (o *Lines) Run(r *Run) error {
	p, err := r.page()
	if err != nil {
		return err
	}
	eol := pages.EOL(p.Src)
	old := strings.TrimRight(o.Old, "\r\n")
	want := strings.Split(strings.ReplaceAll(old, "\r\n", "\n"), "\n")
	all := bytes.SplitAfter(p.Src, []byte("\n"))
	var at []int // first lines, from 0
	for i := 0; i+len(want) <= len(all); i++ {
		if slices.EqualFunc(all[i:i+len(want)], want, func(line []byte, w string) bool {
			return string(bytes.TrimRight(line, "\r\n")) == strings.TrimRight(w, "\r")
		}) {
			at = append(at, i)
		}
	}
	first := o.To - len(want)
	switch {
	case len(at) == 1:
		first = at[0]
	case !slices.Contains(at, first):
		return say.Refuse("what is to be replaced in %s is %s, and that stands %s in %s now", numbered(first+1, o.To),
			say.Quote(old), say.Times(len(at)), r.Site.Show(p.Path))
	}
	start := 0
	for _, line := range all[:first] {
		start += len(line)
	}
	end := start
	for _, line := range all[first : first+len(want)] {
		end += len(line)
	}
	now := strings.ReplaceAll(strings.ReplaceAll(o.New, "\r\n", "\n"), "\n", eol)
	if now != "" && !strings.HasSuffix(now, eol) && bytes.HasSuffix(p.Src[start:end], []byte("\n")) {
		now += eol
	}
	if now == string(p.Src[start:end]) {
		return say.Idle("the lines are as they are suggested already")
	}
	if err := r.edit(p, []markup.Edit{{Span: markup.Span{Start: start, End: end}, New: []byte(now)}}, "lines replaced", len(want)); err != nil {
		return err
	}
	r.Did("Replaced %s of %s as suggested", numbered(first+1, first+len(want)), r.Site.Show(p.Path))
	r.headline("apply a suggestion to %s", r.Site.Show(p.Path))
	return nil
}
