package edit

import (
	"bytes"
	"fmt"
	"slices"

	"docent/agent/say"
	"docent/site/markup"
)

// SetFront sets or removes a key of the front matter.
type SetFront struct {
	Key, Value string
	Was        string // what it must be now; empty for anything
	Remove     bool
	Located
}

func (o *SetFront) Todo() string {
	if o.Remove {
		return fmt.Sprintf("Remove %s from the front matter %s", o.Key, o.Scope)
	}
	return fmt.Sprintf("Set %s to %s %s", o.Key, say.Quote(o.Value), o.Scope)
}

// Keys whose value no page shares with another one.
var ownValue = map[string]bool{"title": true, "description": true, "sidebarTitle": true, "sidebar_label": true,
	"slug": true, "permalink": true, "id": true, "url": true}

func (o *SetFront) Within(s Scope) Operation { return again(o, s) }

func (o *SetFront) Run(r *Run) error {
	pages := r.pages()
	if named := slices.Concat(o.Scope.In...); !o.Remove && ownValue[o.Key] && len(pages) > len(named) {
		return say.Refuse("that would give %s the same %s %s; name the pages", say.Count(len(pages), "page"), o.Key, o.Scope)
	}
	n := 0
	for _, f := range pages {
		p, err := r.Site.Page(f)
		if err != nil {
			return err
		}
		var edits []markup.Edit
		if o.Remove {
			if _, ok := p.Front.Values[o.Key]; !ok {
				if len(pages) > 1 {
					continue
				}
				if nested := p.FrontPaths(o.Key); len(nested) > 0 {
					return say.Refuse("the front matter of %s has no %s of its own; it has %s, which is not removed by itself",
						r.Site.Show(f), o.Key, say.List(nested))
				}
				return say.Idle("the front matter of %s has no %s", r.Site.Show(f), o.Key)
			}
			edits, err = p.RemoveFront(o.Key)
		} else if nested := p.FrontPaths(o.Key); len(nested) > 0 {
			if len(nested) > 1 {
				return say.Refuse("the front matter of %s has %s; say which one is meant", r.Site.Show(f), say.List(nested))
			}
			edits, err = p.SetNested(nested[0], o.Value, o.Was)
		} else {
			if _, holds := p.Front.Values[o.Key].(map[string]any); holds {
				return say.Refuse("%s of %s holds other keys; name one of them, as “%s.…”", o.Key, r.Site.Show(f), o.Key)
			}
			if now := fmt.Sprint(p.Front.Values[o.Key]); o.Was != "" && now != o.Was {
				return say.Refuse("%s of %s is %s, not %s", o.Key, r.Site.Show(f), say.Quote(now), say.Quote(o.Was))
			}
			edits, err = p.SetFront(o.Key, o.Value)
		}
		if err != nil {
			return say.Refuse("%v", err)
		}
		out, err := markup.Apply(p.Src, edits)
		if err != nil {
			return fmt.Errorf("edit %s: %w", f, err)
		}
		if bytes.Equal(out, p.Src) {
			continue
		}
		what := "front matter keys set"
		if o.Remove {
			what = "front matter keys removed"
		}
		if err := r.edit(p, edits, what, 1); err != nil {
			return err
		}
		n++
	}
	if n == 0 {
		if o.Remove {
			return say.Idle("no front matter%s has %s", o.Scope.there(), o.Key)
		}
		return say.Idle("%s is %s already", o.Key, say.Quote(o.Value))
	}
	where := say.Count(n, "file")
	if n == 1 && len(pages) == 1 {
		where = r.Site.Show(pages[0])
	}
	if o.Remove {
		r.Did("Removed %s from the front matter of %s", o.Key, where)
		r.headline("remove %s from %s", o.Key, where)
		return nil
	}
	r.Did("Set %s to %s in %s", o.Key, say.Quote(o.Value), where)
	r.headline("set %s of %s", o.Key, where)
	return nil
}
