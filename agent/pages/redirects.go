package pages

import (
	"path"
	"strings"

	"github.com/tailscale/hujson"

	"docent/agent/say"
	"docent/internal/formats"
	"docent/site/links"
	"docent/site/markup"
)

// redirectFile finds the array of redirects: in the configuration, or in the file that it refers to.
func (n *Navigation) redirectFile() (*Navigation, *hujson.Value, error) {
	root, err := formats.JSONTree(n.Src)
	if err != nil {
		return nil, nil, say.Refuse("%s does not parse: %v", n.File, err)
	}
	top, ok := root.Value.(*hujson.Object)
	if !ok {
		return n, nil, nil
	}
	m := member(top, "redirects")
	if m == nil {
		return n, nil, nil
	}
	if o, ok := m.Value.(*hujson.Object); ok {
		ref := member(o, "$ref")
		if ref == nil {
			return n, nil, nil
		}
		name, _ := str(ref)
		f := path.Join(path.Dir(n.File), name)
		if !n.site.Files.Exists(f) || n.site.Files.Writable(f) != nil {
			return nil, nil, nil
		}
		src, err := n.site.Files.Read(f)
		if err != nil {
			return nil, nil, err
		}
		other := &Navigation{site: n.site, File: f, Src: src}
		v, err := formats.JSONTree(src)
		if err != nil {
			return nil, nil, say.Refuse("%s does not parse: %v", f, err)
		}
		if _, ok := v.Value.(*hujson.Array); !ok {
			return nil, nil, nil
		}
		return other, &v, nil
	}
	if _, ok := m.Value.(*hujson.Array); !ok {
		return nil, nil, nil
	}
	return n, m, nil
}

type redirect struct {
	source, dest string
	at           *hujson.Value // of the destination
	index        int
}

func readRedirects(v *hujson.Value) []redirect {
	var out []redirect
	a, ok := v.Value.(*hujson.Array)
	if !ok {
		return nil
	}
	for i := range a.Elements {
		o, ok := a.Elements[i].Value.(*hujson.Object)
		if !ok {
			continue
		}
		src, dst := member(o, "source"), member(o, "destination")
		if src == nil || dst == nil {
			continue
		}
		x, ok1 := str(src)
		y, ok2 := str(dst)
		if ok1 && ok2 {
			out = append(out, redirect{x, y, dst, i})
		}
	}
	return out
}

// Redirect adds a redirect from one page's address to another's: redirects that led to the old address lead on, and one
// that would hide the new page goes.
func (n *Navigation) Redirect(from, to string) (*Navigation, int, error) {
	where, v, err := n.redirectFile()
	if err != nil || where == nil {
		return nil, 0, err
	}
	src, dst := "/"+n.Route(from), "/"+n.Route(to)
	done := 0
	if v != nil {
		for _, r := range readRedirects(v) {
			if strings.TrimSuffix(r.source, "/") == dst {
				if err := where.apply([]markup.Edit{where.removeElement(v.Value.(*hujson.Array), r.index)}); err != nil {
					return nil, 0, err
				}
				done++
				if where, v, err = where.again(n); err != nil {
					return nil, 0, err
				}
				break
			}
		}
		var edits []markup.Edit
		for _, r := range readRedirects(v) {
			d, rest, _ := links.LocalPath(r.dest)
			if strings.TrimSuffix(d, "/") == src {
				edits = append(edits, markup.Edit{Span: markup.Span{Start: r.at.StartOffset, End: r.at.EndOffset},
					New: []byte(jsonString(dst + rest))})
			}
		}
		if len(edits) > 0 {
			if err := where.apply(edits); err != nil {
				return nil, 0, err
			}
			done += len(edits)
			if where, v, err = where.again(n); err != nil {
				return nil, 0, err
			}
		}
	}
	eol := EOL(where.Src)
	if v == nil { // no redirects yet
		root, err := formats.JSONTree(where.Src)
		if err != nil {
			return nil, 0, err
		}
		top, ok := root.Value.(*hujson.Object)
		if !ok || len(top.Members) == 0 {
			return nil, 0, nil
		}
		last := &top.Members[len(top.Members)-1]
		ls := LineStart(where.Src, last.Name.StartOffset)
		in := string(where.Src[ls:last.Name.StartOffset])
		if strings.TrimSpace(in) != "" {
			in = "  "
		}
		text := "," + eol + in + `"redirects": [` + eol + in + in + "{" + eol + in + in + in + `"source": ` +
			jsonString(src) + "," + eol + in + in + in + `"destination": ` + jsonString(dst) + eol + in + in + "}" + eol + in +
			"]"
		at := last.Value.EndOffset
		return where, done + 1, where.apply([]markup.Edit{{Span: markup.Span{Start: at, End: at}, New: []byte(text)}})
	}
	a := v.Value.(*hujson.Array)
	g := groupAt{array: a, value: v}
	text := `{ "source": ` + jsonString(src) + `, "destination": ` + jsonString(dst) + ` }`
	if k := len(a.Elements); k > 0 { // laid out like the last one
		if o, ok := a.Elements[k-1].Value.(*hujson.Object); ok && len(o.Members) > 0 {
			e := &a.Elements[k-1]
			ls := LineStart(where.Src, o.Members[0].Name.StartOffset)
			es := LineStart(where.Src, e.StartOffset)
			if ls > e.StartOffset && strings.TrimSpace(string(where.Src[es:e.StartOffset])) == "" {
				in, out := string(where.Src[ls:o.Members[0].Name.StartOffset]), string(where.Src[es:e.StartOffset])
				text = "{" + eol + in + `"source": ` + jsonString(src) + "," + eol + in + `"destination": ` + jsonString(dst) +
					eol + out + "}"
			}
		}
	}
	return where, done + 1, where.apply([]markup.Edit{where.insertElement(g, len(a.Elements), text)})
}

// again finds the redirects once more after an edit.
func (n *Navigation) again(config *Navigation) (*Navigation, *hujson.Value, error) {
	if n.File != config.File {
		v, err := formats.JSONTree(n.Src)
		return n, &v, err
	}
	return n.redirectFile()
}
