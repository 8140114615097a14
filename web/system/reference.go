package system

import (
	"html/template"
	"strings"

	"docent/api/openapi"
	"docent/web/console"
)

// apiView is the description of the API as people read it.
type apiView struct {
	openapi.Reference
	Groups []apiGroup
}

type apiGroup struct {
	openapi.Group
	Operations []apiOperation
}

// An apiOperation is an operation with what the page needs to try it.
type apiOperation struct {
	openapi.Operation
	Curl string
}

// Key is the kind of key that the operation is tried with; empty if it needs none.
func (o apiOperation) Key() string {
	if len(o.Keys) == 0 {
		return ""
	}
	return o.Keys[0]
}

// Stream reports whether its answer comes bit by bit.
func (o apiOperation) Stream() bool {
	for _, r := range o.Responses {
		for _, c := range r.Content {
			if c.Events != "" {
				return true
			}
		}
	}
	return false
}

// showAPI is the API to read and to try. It is for anybody, as the document is that it is made from, so it is made once.
func (s *handler) showAPI(v *console.Visit) error {
	content, err := s.reference()
	if err != nil {
		return err
	}
	return s.Render(v, "reference", "API", content)
}

func (s *handler) makeReference() (template.HTML, error) {
	view := apiView{Reference: openapi.Read()}
	for _, g := range view.Reference.Groups {
		group := apiGroup{Group: g}
		for _, o := range g.Operations {
			op := apiOperation{Operation: o}
			op.Curl = op.curl(s.APIAddress())
			group.Operations = append(group.Operations, op)
		}
		view.Groups = append(view.Groups, group)
	}
	return console.Execute("reference.content", view)
}

// curl is the operation with its first example as a command. The page's script writes the same with what was entered.
func (o apiOperation) curl(server string) string {
	address := server + o.Path
	lines := []string{"curl"}
	if o.Stream() {
		lines[0] += " -N"
	}
	if o.Method != "GET" && o.Body == nil {
		lines[0] += " -X " + o.Method
	}
	for _, p := range o.Parameters {
		if p.In == "path" && p.Example != "" {
			address = strings.ReplaceAll(address, "{"+p.Name+"}", p.Example)
		}
	}
	lines[0] += " " + console.ShellWord(address)
	if key := o.Key(); key != "" {
		lines = append(lines, `  -H "Authorization: Bearer $`+strings.ToUpper(key)+`_KEY"`)
	}
	if o.Body != nil {
		lines = append(lines, "  -H 'Content-Type: application/json'")
		if len(o.Body.Examples) > 0 {
			lines = append(lines, "  -d "+console.ShellWord(o.Body.Examples[0].Text))
		}
	}
	return strings.Join(lines, " \\\n")
}
