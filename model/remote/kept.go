package remote

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// What a provider sends with a turn and nobody here knows is kept as it came, and goes back to it unread: signatures of
// thoughts, reasoning, encrypted items. It is kept in the provider's own form, with the texts and calls taken out that
// the turn has itself: these may have been shortened since, and are filled in when the turn goes back.
type keptTurn struct {
	By string          `json:"by"` // the wire, the host, and the model: nobody else understands it
	As json.RawMessage `json:"as"`
}

// keep makes the form in which a turn's own is kept; nil if there is nothing.
func (r *Model) keep(w wire, as any) json.RawMessage {
	if as == nil {
		return nil
	}
	b, err := json.Marshal(as)
	if err != nil {
		return nil // it was read from JSON
	}
	kept, err := json.Marshal(keptTurn{r.keeper(w), b})
	if err != nil {
		return nil
	}
	return kept
}

func (r *Model) keeper(w wire) string { return w.name() + " " + r.host + " " + r.Model }

// unkeep reads what was kept of a turn by this wire and this model; it is false if that was another.
func (r *Model) unkeep(w wire, kept json.RawMessage, as any) bool {
	var in keptTurn
	return len(kept) > 0 && json.Unmarshal(kept, &in) == nil && in.By == r.keeper(w) && json.Unmarshal(in.As, as) == nil
}

// A fieldSet is an object whose fields are not known, as it came.
type fieldSet map[string]*grown

// A grown value is one that came in pieces: texts that grow, objects and lists with such, and anything else whole.
type grown struct {
	text   strings.Builder
	isText bool
	list   []*grown
	isList bool
	object fieldSet
	whole  json.RawMessage
}

// MarshalJSON writes the value as if it had come at once.
func (g *grown) MarshalJSON() ([]byte, error) {
	switch {
	case g.isText:
		return json.Marshal(g.text.String())
	case g.isList:
		return json.Marshal(g.list)
	case g.object != nil:
		return json.Marshal(g.object)
	}
	return g.whole, nil
}

// deepestKept bounds how far into a value pieces are put together. What lies deeper is kept whole.
const deepestKept = 8

// grow takes in a piece of a value with this name.
func (g *grown) grow(key string, b json.RawMessage, depth int) {
	b = bytes.TrimSpace(b)
	if len(b) == 0 || string(b) == "null" {
		return
	}
	var s string
	var list []json.RawMessage
	var object map[string]json.RawMessage
	switch {
	case b[0] == '"' && json.Unmarshal(b, &s) == nil:
		if !g.isText {
			*g = grown{isText: true}
		}
		if !growing(key) && s != "" {
			g.text.Reset()
		}
		g.text.WriteString(s)
	case depth < deepestKept && b[0] == '[' && json.Unmarshal(b, &list) == nil:
		if !g.isList {
			*g = grown{isList: true}
		}
		for _, item := range list {
			g.add(item, depth)
		}
	case depth < deepestKept && b[0] == '{' && json.Unmarshal(b, &object) == nil:
		if g.object == nil {
			*g = grown{object: fieldSet{}}
		}
		for k, v := range object {
			g.object.grow(k, v, depth+1)
		}
	default:
		*g = grown{whole: slices.Clone(b)}
	}
}

// growing reports whether pieces of a text with this name belong behind each other. Others come whole, perhaps again.
func growing(key string) bool {
	switch key {
	case "text", "summary", "data", "thinking":
		return true
	}
	return (strings.HasPrefix(key, "reason") || strings.HasPrefix(key, "think") || strings.HasPrefix(key, "thought")) &&
		!strings.HasSuffix(key, "signature") && !strings.HasSuffix(key, "id")
}

// add takes in an item of a list: as a further piece of the last one if both have the same type and the same index.
func (g *grown) add(item json.RawMessage, depth int) {
	if n := len(g.list); n > 0 && g.list[n-1].object != nil {
		var next map[string]json.RawMessage
		last := g.list[n-1].object
		if json.Unmarshal(item, &next) == nil && next != nil && last.same("type", next) && last.same("index", next) &&
			(next["index"] != nil || string(next["type"]) == `"thinking"` || string(next["type"]) == `"text"`) {
			g.list[n-1].grow("", item, depth+1)
			return
		}
	}
	v := new(grown)
	v.grow("", item, depth+1)
	g.list = append(g.list, v)
}

func (f fieldSet) same(key string, next map[string]json.RawMessage) bool {
	if f[key] == nil || next[key] == nil {
		return f[key] == nil && next[key] == nil
	}
	b, err := f[key].MarshalJSON()
	return err == nil && bytes.Equal(b, bytes.TrimSpace(next[key]))
}

func (f fieldSet) grow(key string, b json.RawMessage, depth int) {
	if b = bytes.TrimSpace(b); len(b) == 0 || string(b) == "null" {
		return
	}
	if f[key] == nil {
		f[key] = new(grown)
	}
	f[key].grow(key, b, depth)
}

// take takes in the fields of an object, but for those that are known.
func (f fieldSet) take(from map[string]json.RawMessage, known ...string) {
	for k, v := range from {
		if !slices.Contains(known, k) {
			f.grow(k, v, 1)
		}
	}
}

// empty reports whether a field says nothing: lists and objects without content come with each answer of some servers.
func (g *grown) empty() bool {
	switch {
	case g.isText:
		return false // an empty text may have to come back
	case g.isList:
		return len(g.list) == 0
	case g.object != nil:
		return len(g.object) == 0
	}
	return len(g.whole) == 0
}

// trim leaves out what says nothing, and returns nil if nothing is left.
func (f fieldSet) trim() fieldSet {
	for k, v := range f {
		if v.empty() {
			delete(f, k)
		}
	}
	if len(f) == 0 {
		return nil
	}
	return f
}

// split cuts a text into parts of these lengths. If they are not its own, all of it is the first part.
func split(text string, lengths []int) []string {
	out := make([]string, len(lengths))
	sum := 0
	for _, n := range lengths {
		sum += n
	}
	if sum != len(text) || slices.ContainsFunc(lengths, func(n int) bool { return n < 0 }) {
		if len(out) > 0 {
			out[0] = text
		}
		return out
	}
	for i, n := range lengths {
		out[i], text = text[:n], text[n:]
	}
	return out
}
