package article

import (
	"slices"
	"strings"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"docent/internal/brief"
)

// A selector finds elements as style sheets do.
type selector = cascadia.SelectorGroup

func selects(text string) selector {
	s, err := cascadia.ParseGroup(text)
	if err != nil {
		panic(err) // it is a constant of this package
	}
	return s
}

func all(n *html.Node, s selector) []*html.Node { return cascadia.QueryAll(n, s) }

func first(n *html.Node, s selector) *html.Node { return cascadia.Query(n, s) }

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// hasWord reports whether an attribute holds a word, in letters of any case.
func hasWord(n *html.Node, key, word string) bool {
	return slices.Contains(strings.Fields(strings.ToLower(attr(n, key))), word)
}

func has(n *html.Node, key string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == key })
}

func drop(n *html.Node) {
	if n.Parent != nil {
		n.Parent.RemoveChild(n)
	}
}

// unwrap puts what an element holds in its place.
func unwrap(n *html.Node) {
	if n.Parent == nil {
		return
	}
	for c := n.FirstChild; c != nil; c = n.FirstChild {
		n.RemoveChild(c)
		n.Parent.InsertBefore(c, n)
	}
	drop(n)
}

// replace puts an element in the place of another.
func replace(old, with *html.Node) {
	if old.Parent != nil {
		old.Parent.InsertBefore(with, old)
		drop(old)
	}
}

// element creates one; what it holds is taken from where it was.
func element(tag atom.Atom, children ...*html.Node) *html.Node {
	n := &html.Node{Type: html.ElementNode, Data: tag.String(), DataAtom: tag}
	for _, c := range children {
		drop(c)
		n.AppendChild(c)
	}
	return n
}

func textNode(text string) *html.Node { return &html.Node{Type: html.TextNode, Data: text} }

// label is a line of its own that names what follows it.
func label(text string) *html.Node {
	return element(atom.P, element(atom.Strong, textNode(text)))
}

// rename makes an element one of another kind.
func rename(n *html.Node, tag atom.Atom) { n.Data, n.DataAtom = tag.String(), tag }

func children(n *html.Node) (out []*html.Node) {
	for c := range n.ChildNodes() {
		out = append(out, c)
	}
	return out
}

// text is what an element says, on one line.
func text(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		switch {
		case c.Type == html.TextNode && !within(c, n, atom.Script, atom.Style, atom.Template, atom.Noscript):
			b.WriteString(c.Data)
		case c.Type == html.ElementNode && blocks[c.DataAtom]:
			b.WriteByte(' ')
		}
	}
	return squeeze(b.String())
}

func squeeze(text string) string {
	return brief.Line(strings.ReplaceAll(text, "\u200b", ""))
}

// within reports whether one of these elements holds a node, below top.
func within(n, top *html.Node, tags ...atom.Atom) bool {
	for p := n.Parent; p != nil && p != top; p = p.Parent {
		if slices.Contains(tags, p.DataAtom) {
			return true
		}
	}
	return false
}

// holds reports whether an element holds another one.
func holds(n, inner *html.Node) bool {
	for p := inner; p != nil; p = p.Parent {
		if p == n {
			return true
		}
	}
	return false
}

// blocks begin lines of their own.
var blocks = map[atom.Atom]bool{atom.P: true, atom.Div: true, atom.Section: true, atom.Article: true, atom.Main: true,
	atom.Header: true, atom.Footer: true, atom.Aside: true, atom.Nav: true, atom.Ul: true, atom.Ol: true, atom.Li: true,
	atom.Dl: true, atom.Dt: true, atom.Dd: true, atom.Table: true, atom.Tr: true, atom.Td: true, atom.Th: true,
	atom.Pre: true, atom.Blockquote: true, atom.H1: true, atom.H2: true, atom.H3: true, atom.H4: true, atom.H5: true,
	atom.H6: true, atom.Br: true, atom.Hr: true, atom.Figure: true, atom.Figcaption: true, atom.Details: true,
	atom.Summary: true}
