package reqbody

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"docent/api"
)

const maxProblems = 100 // listed in one answer

// Problems collects what is wrong with a request, all of it.
type Problems struct{ list []api.Problem }

// Add notes one.
func (p *Problems) Add(field, format string, args ...any) {
	if len(p.list) < maxProblems {
		p.list = append(p.list, api.Problem{Field: field, Message: fmt.Sprintf(format, args...)})
	}
}

// Err is an *api.InvalidError, or nil if nothing is wrong.
func (p *Problems) Err() error {
	if len(p.list) == 0 {
		return nil
	}
	return &api.InvalidError{Problems: p.list}
}

// body is the members of a body, which must be a JSON object.
func (p *Problems) body(raw []byte) (object, error) {
	v, err := parse(raw)
	if err == nil && is(v) != braces {
		p.Add("body", "must be a JSON object, not %s", kind(v))
		err = p.Err()
	}
	return members(v), err
}

// A length is how many characters a string may have.
type length struct {
	min, max int
	trim     bool // space around it does not count, and is taken off
	lines    bool // it is text of several lines, not a name
}

// required reads a string that must be there.
func (p *Problems) required(field string, v value, l length) string {
	if is(v) == none {
		p.Add(field, "is required: send a string of %d to %d characters", max(l.min, 1), l.max)
		return ""
	}
	return p.optional(field, v, l)
}

// optional reads a string that may be left out.
func (p *Problems) optional(field string, v value, l length) string {
	switch is(v) {
	case none:
		return ""
	case text:
	default:
		p.Add(field, "must be a string, not %s", kind(v))
		return ""
	}
	s := word(v)
	if l.trim {
		s = strings.TrimSpace(s)
	}
	switch count := utf8.RuneCountInString(s); {
	case count < l.min && count == 0:
		p.Add(field, "must not be empty: send %d to %d characters", l.min, l.max)
	case count < l.min:
		p.Add(field, "must have at least %d characters, and has %d", l.min, count)
	case count > l.max:
		p.Add(field, "must have at most %d characters, and has %d: shorten it", l.max, count)
	case control(s, l.lines):
		p.Add(field, "must not hold control characters: take them out")
	default:
		return s
	}
	return ""
}

// control reports whether a string holds characters that no text has. Text of several lines may hold all but NUL, since
// people paste what their terminals show; a name may hold none.
func control(s string, lines bool) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r == 0 || !lines && (r < ' ' || r == 0x7f) })
}

// nullable reads a string that may be left out or null.
func (p *Problems) nullable(field string, v value, l length) string {
	if is(v) == null {
		return ""
	}
	return p.optional(field, v, l)
}

// numbers is what a whole number may be, in words.
func numbers(least, most int) string {
	if least == most {
		return strconv.Itoa(least)
	}
	return fmt.Sprintf("a whole number from %d to %d", least, most)
}

// whole reads a whole number that may be left out.
func (p *Problems) whole(field string, v value, least, most, otherwise int) int {
	switch is(v) {
	case none:
		return otherwise
	case number:
	default:
		p.Add(field, "must be %s, not %s", numbers(least, most), kind(v))
		return otherwise
	}
	n, err := strconv.ParseFloat(string(v), 64)
	if err != nil || n != math.Trunc(n) || n < float64(least) || n > float64(most) {
		p.Add(field, "must be %s", numbers(least, most))
		return otherwise
	}
	return int(n)
}

// fraction reads a number that may be left out.
func (p *Problems) fraction(field string, v value, least, most float64) float64 {
	switch is(v) {
	case none:
		return 0
	case number:
	default:
		p.Add(field, "must be a number from %v to %v, not %s", least, most, kind(v))
		return 0
	}
	n, err := strconv.ParseFloat(string(v), 64)
	if err != nil || n < least || n > most {
		p.Add(field, "must be a number from %v to %v", least, most)
		return 0
	}
	return n
}

// boolean reads a boolean that may be left out.
func (p *Problems) boolean(field string, v value) bool {
	switch is(v) {
	case none:
		return false
	case boolean:
		return v[0] == 't'
	}
	p.Add(field, "must be true or false, not %s", kind(v))
	return false
}

// strings reads an array of strings that may be left out or null.
func (p *Problems) strings(field string, v value, most int, l length) []string {
	switch is(v) {
	case none, null:
		return nil
	case brackets:
	default:
		p.Add(field, "must be an array of strings, not %s", kind(v))
		return nil
	}
	var list []string
	for i, e := range elements(v) {
		if i == most {
			p.Add(field, "must have at most %d entries", most)
			break
		}
		if s := p.required(field+"["+strconv.Itoa(i)+"]", e, l); s != "" {
			list = append(list, s)
		}
	}
	return list
}

// enum reads a string that must be one of those.
func (p *Problems) enum(field string, v value, of ...string) string {
	switch is(v) {
	case none:
		p.Add(field, "is required: send one of %s", strings.Join(of, ", "))
		return ""
	case text:
	default:
		p.Add(field, "must be one of %s, not %s", strings.Join(of, ", "), kind(v))
		return ""
	}
	if s := word(v); slices.Contains(of, s) {
		return s
	}
	p.Add(field, "must be one of %s", strings.Join(of, ", "))
	return ""
}

// QueryOne is a query parameter that may be given once.
func (p *Problems) QueryOne(query url.Values, name string) (string, bool) {
	values := query[name]
	if len(values) == 0 {
		return "", false
	}
	if len(values) > 1 {
		p.Add(name, "must be given once, not %d times", len(values))
		return "", false
	}
	return values[0], true
}

// QueryInt is a query parameter that is a whole number.
func (p *Problems) QueryInt(query url.Values, name string, least, most, otherwise int) int {
	v, ok := p.QueryOne(query, name)
	if !ok {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < least || n > most {
		p.Add(name, "must be %s", numbers(least, most))
		return otherwise
	}
	return n
}

// QueryTime is a query parameter that is a point in time, or a day, which stands for its beginning in UTC.
func (p *Problems) QueryTime(query url.Values, name string) time.Time {
	v, ok := p.QueryOne(query, name)
	if !ok {
		return time.Time{}
	}
	for _, form := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(form, v); err == nil && t.Year() > 0 {
			return t.UTC()
		}
	}
	p.Add(name, "must be a day such as 2026-11-21, or a time such as 2026-11-21T10:00:00Z")
	return time.Time{}
}
