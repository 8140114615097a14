package web

import (
	"errors"
	"strings"

	"docent/api"
)

// A formField is one question of a form, with what was answered and what is wrong with that.
type formField struct {
	Name, Label, Value string
	Kind               string // text where empty; also area, select, check, password, url, number
	Hint               string
	Fault              string
	Complete           string // what a browser may fill in
	Required           bool
	Fixed              bool // shown and not asked
	Options            []formOption
	On                 bool // of a check
}

// A formOption is one of the answers of a select.
type formOption struct {
	Value, Label string
	On           bool
}

// Describe is the ids of what describes the field; empty where nothing does.
func (f formField) Describe() string {
	var ids []string
	if f.Hint != "" {
		ids = append(ids, f.Name+"-hint")
	}
	if f.Fault != "" {
		ids = append(ids, f.Name+"-fault")
	}
	return strings.Join(ids, " ")
}

// faults are the problems of a form by field, and false where the error is another one.
func faults(err error) (map[string]string, bool) {
	var invalid *api.InvalidError
	if !errors.As(err, &invalid) {
		return nil, false
	}
	out := map[string]string{}
	for _, p := range invalid.Problems {
		name, _, _ := strings.Cut(p.Field, "[")
		out[name] = strings.TrimPrefix(out[name]+"; "+p.Message, "; ")
	}
	return out, true
}

// place puts the problems at their fields and gives those that belong to none of them.
func placeFaults(fields []formField, problems map[string]string) (others []string) {
	left := map[string]string{}
	for name, text := range problems {
		left[name] = text
	}
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

// lines are the texts of a field that takes one in each line.
func lines(text string) (out []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}
