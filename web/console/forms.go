package console

import (
	"errors"
	"maps"
	"strings"

	"docent/api"
)

// A Field is one question of a form, with what was answered and what is wrong with that.
type Field struct {
	Name, Label, Value string
	Kind               string // text if empty; also area, select, check, password, url, number
	Hint               string
	Fault              string
	Complete           string // what a browser may fill in
	Required           bool
	Fixed              bool // shown and not asked
	Options            []Option
	On                 bool // of a check
}

// An Option is one of the answers of a select.
type Option struct {
	Value, Label string
	On           bool
}

// Describe returns the ids of what describes the field; empty if nothing does.
func (f Field) Describe() string {
	var ids []string
	if f.Hint != "" {
		ids = append(ids, f.Name+"-hint")
	}
	if f.Fault != "" {
		ids = append(ids, f.Name+"-fault")
	}
	return strings.Join(ids, " ")
}

// Faults returns the problems of a form by field; there are none if the error is another one.
func Faults(err error) map[string]string {
	out := map[string]string{}
	var invalid *api.InvalidError
	if !errors.As(err, &invalid) {
		return out
	}
	for _, p := range invalid.Problems {
		name, _, _ := strings.Cut(p.Field, "[")
		out[name] = strings.TrimPrefix(out[name]+"; "+p.Message, "; ")
	}
	return out
}

// PlaceFaults puts the problems at their fields and returns those that belong to none of them.
func PlaceFaults(fields []Field, problems map[string]string) (others []string) {
	left := map[string]string{}
	maps.Copy(left, problems)
	for i, f := range fields {
		if text, ok := left[f.Name]; ok {
			fields[i].Fault = text
			delete(left, f.Name)
		}
	}
	for name, text := range left {
		others = append(others, name+" "+text)
	}
	return others
}

// Lines returns the texts of a field that takes one in each line.
func Lines(text string) (out []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}
