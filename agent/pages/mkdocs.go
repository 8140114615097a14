package pages

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"docent/agent/say"
	"docent/formats"
	"docent/markup"
)

// MkDocs: the "nav" of mkdocs.yml, read as nodes and edited by lines.

type yamlEntry struct {
	path   string
	node   *yaml.Node // the path's scalar
	item   int        // the line of its dash
	indent int        // the column of its dash, from 0
	group  string
}

func (n *Navigation) yamlDoc() (*yaml.Node, error) {
	var doc yaml.Node
	if err := formats.YAML(n.Src, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("it is no mapping")
	}
	return doc.Content[0], nil
}

// yamlDir is the folder that mkdocs.yml names the pages from.
func (n *Navigation) yamlDir() string { return n.site.Generator.Content() }

func (n *Navigation) yamlNav() ([]yamlEntry, error) {
	doc, err := n.yamlDoc()
	if err != nil {
		return nil, err
	}
	var out []yamlEntry
	var visit func(seq *yaml.Node, group string)
	visit = func(seq *yaml.Node, group string) {
		if seq.Kind != yaml.SequenceNode || seq.Style&yaml.FlowStyle != 0 {
			return
		}
		for _, it := range seq.Content {
			switch it.Kind {
			case yaml.ScalarNode:
				out = append(out, yamlEntry{it.Value, it, it.Line, seq.Column - 1, group})
			case yaml.MappingNode:
				for i := 0; i+1 < len(it.Content); i += 2 {
					k, v := it.Content[i], it.Content[i+1]
					if v.Kind == yaml.ScalarNode {
						out = append(out, yamlEntry{v.Value, v, k.Line, seq.Column - 1, group})
					} else {
						visit(v, k.Value)
					}
				}
			}
		}
	}
	for i := 0; i+1 < len(doc.Content); i += 2 {
		if doc.Content[i].Value == "nav" {
			visit(doc.Content[i+1], "")
		}
	}
	return out, nil
}

func (n *Navigation) lineOffset(line int) int {
	at := 0
	for ; line > 1 && at < len(n.Src); line-- {
		at = LineAfter(n.Src, at)
	}
	return at
}

func (n *Navigation) yamlAdd(file, title, group, after, before string, top bool) (string, error) {
	entries, err := n.yamlNav()
	if err != nil {
		return "", say.Refuse("%s does not parse: %v", n.File, err)
	}
	if len(entries) == 0 {
		return "", say.Refuse("%s has no nav", n.File)
	}
	if !strings.HasPrefix(file, n.yamlDir()+"/") && n.yamlDir() != "." && n.yamlDir() != "" {
		return "", say.Refuse("%s lies outside %s", file, n.yamlDir())
	}
	pick := -1
	below := true
	find := func(name string) error {
		sib, err := n.site.Find(name)
		if err != nil {
			return err
		}
		for i, e := range entries {
			if path.Join(n.yamlDir(), e.path) == sib && (group == "" || SameFold(e.group, group)) {
				pick = i
				return nil
			}
		}
		return say.Refuse("%s is not in the navigation", n.site.Show(sib))
	}
	switch {
	case after != "":
		err = find(after)
	case before != "":
		below = false
		err = find(before)
	case group != "":
		for i, e := range entries {
			if SameFold(e.group, group) && (pick < 0 || !top && e.indent == entries[pick].indent) {
				pick = i
			}
		}
		below = !top
		if pick < 0 {
			var names []string
			for _, e := range entries {
				if e.group != "" && !slices.Contains(names, e.group) {
					names = append(names, e.group)
				}
			}
			err = say.Refuse("the navigation has no group %s; it has %s", say.Quote(group), say.List(names))
		}
	default:
		groups := map[string]bool{}
		for i, e := range entries {
			if path.Dir(e.path) == path.Dir(n.Route(file)) {
				pick = i
				groups[e.group] = true
			}
		}
		if len(groups) != 1 {
			err = say.Refuse("no one group of the navigation holds the pages of its folder")
		}
	}
	if err != nil {
		return "", err
	}
	e := entries[pick]
	titled := strings.Contains(string(n.Src[n.lineOffset(e.item):LineAfter(n.Src, n.lineOffset(e.item))]), ": ")
	text := n.Route(file)
	if strings.ContainsAny(text, ":#{}[]&*!|>'\"%@` ") {
		text = jsonString(text)
	}
	if titled {
		key := title
		if strings.ContainsAny(key, ":#{}[]&*!|>'\"%@`,") || key == "" {
			key = jsonString(key)
		}
		text = key + ": " + text
	}
	eol := EOL(n.Src)
	at := n.lineOffset(e.item)
	if below {
		at = LineAfter(n.Src, n.lineOffset(e.node.Line))
	}
	line := strings.Repeat(" ", max(e.indent, 0)) + "- " + text + eol
	if below && at == len(n.Src) && !bytes.HasSuffix(n.Src, []byte("\n")) {
		line = eol + strings.TrimSuffix(line, eol)
	}
	return e.group, n.apply([]markup.Edit{{Span: markup.Span{Start: at, End: at}, New: []byte(line)}})
}

func (n *Navigation) yamlDrop(file string) (int, error) {
	entries, err := n.yamlNav()
	if err != nil {
		return 0, say.Refuse("%s does not parse: %v", n.File, err)
	}
	var edits []markup.Edit
	for _, e := range entries {
		if path.Join(n.yamlDir(), e.path) == file {
			edits = append(edits, markup.Edit{Span: markup.Span{Start: n.lineOffset(e.item), End: LineAfter(n.Src, n.lineOffset(e.node.Line))}})
		}
	}
	if len(edits) == 0 {
		return 0, nil
	}
	return len(edits), n.apply(edits)
}

func (n *Navigation) yamlRename(from, to string) (int, error) {
	entries, err := n.yamlNav()
	if err != nil {
		return 0, say.Refuse("%s does not parse: %v", n.File, err)
	}
	var edits []markup.Edit
	for _, e := range entries {
		if path.Join(n.yamlDir(), e.path) != from {
			continue
		}
		at := n.lineOffset(e.node.Line)
		k := bytes.Index(n.Src[at:LineAfter(n.Src, at)], []byte(e.path))
		if k < 0 {
			return 0, say.Refuse("%s cannot be edited by itself", n.File)
		}
		edits = append(edits, markup.Edit{Span: markup.Span{Start: at + k, End: at + k + len(e.path)}, New: []byte(n.Route(to))})
	}
	if len(edits) == 0 {
		return 0, nil
	}
	return len(edits), n.apply(edits)
}
