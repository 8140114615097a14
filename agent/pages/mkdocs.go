package pages

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"docent/agent/say"
	"docent/internal/formats"
	"docent/site/markup"
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

func (n *Navigation) yamlAdd(e NewEntry) (string, error) {
	entries, err := n.yamlNav()
	if err != nil {
		return "", say.Refuse("%s does not parse: %v", n.File, err)
	}
	if len(entries) == 0 {
		return "", say.Refuse("%s has no nav", n.File)
	}
	if !strings.HasPrefix(e.File, n.yamlDir()+"/") && n.yamlDir() != "." && n.yamlDir() != "" {
		return "", say.Refuse("%s lies outside %s", e.File, n.yamlDir())
	}
	near, below, err := n.yamlNear(e, entries)
	if err != nil {
		return "", err
	}
	at, eol := n.lineOffset(near.item), EOL(n.Src)
	text := yamlText(n.Route(e.File), " ")
	if titled := bytes.Contains(n.Src[at:LineAfter(n.Src, at)], []byte(": ")); titled {
		text = yamlText(e.Title, ",") + ": " + text
	}
	if below {
		at = LineAfter(n.Src, n.lineOffset(near.node.Line))
	}
	line := strings.Repeat(" ", max(near.indent, 0)) + "- " + text + eol
	if below && at == len(n.Src) && !bytes.HasSuffix(n.Src, []byte("\n")) {
		line = eol + strings.TrimSuffix(line, eol)
	}
	return near.group, n.apply([]markup.Edit{{Span: markup.Span{Start: at, End: at}, New: []byte(line)}})
}

// yamlText writes a text as YAML reads it. also are further characters that make it need quotes.
func yamlText(s, also string) string {
	if s == "" || strings.ContainsAny(s, ":#{}[]&*!|>'\"%@`"+also) {
		return jsonString(s)
	}
	return s
}

// yamlNear finds the entry that a new one is to stand below, or above.
func (n *Navigation) yamlNear(e NewEntry, entries []yamlEntry) (near yamlEntry, below bool, err error) {
	pick := -1
	switch {
	case e.After != "" || e.Before != "":
		sib, err := n.site.Find(cmp.Or(e.After, e.Before))
		if err != nil {
			return near, false, err
		}
		pick = slices.IndexFunc(entries, func(x yamlEntry) bool {
			return path.Join(n.yamlDir(), x.path) == sib && (e.Group == "" || SameFold(x.group, e.Group))
		})
		if pick < 0 {
			return near, false, say.Refuse("%s is not in the navigation", n.site.Show(sib))
		}
		return entries[pick], e.After != "", nil
	case e.Group != "":
		for i, x := range entries {
			if SameFold(x.group, e.Group) && (pick < 0 || !e.Top && x.indent == entries[pick].indent) {
				pick = i
			}
		}
		if pick < 0 {
			return near, false, noGroup(e.Group, entries, func(x yamlEntry) string { return x.group })
		}
		return entries[pick], !e.Top, nil
	}
	groups := map[string]bool{}
	for i, x := range entries {
		if path.Dir(x.path) == path.Dir(n.Route(e.File)) {
			pick = i
			groups[x.group] = true
		}
	}
	if len(groups) != 1 {
		return near, false, errNoGroup
	}
	return entries[pick], true, nil
}

func (n *Navigation) yamlDrop(file string) (int, error) {
	entries, err := n.yamlNav()
	if err != nil {
		return 0, say.Refuse("%s does not parse: %v", n.File, err)
	}
	var edits []markup.Edit
	for _, e := range entries {
		if path.Join(n.yamlDir(), e.path) == file {
			edits = append(edits, markup.Edit{Span: markup.Span{Start: n.lineOffset(e.item),
				End: LineAfter(n.Src, n.lineOffset(e.node.Line))}})
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
		edits = append(edits, markup.Edit{Span: markup.Span{Start: at + k, End: at + k + len(e.path)},
			New: []byte(n.Route(to))})
	}
	if len(edits) == 0 {
		return 0, nil
	}
	return len(edits), n.apply(edits)
}
