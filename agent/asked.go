package agent

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"docent/agent/edit"
	"docent/agent/pages"
	"docent/agent/rules"
	"docent/agent/say"
	"docent/api"
)

// correct is what a request in people's words comes to on the pages there are; nil if it names no change.
func correct(q rules.Request, site *pages.Site, names *pages.Titles) *edit.Correct {
	if len(q.Readings) == 0 {
		return nil
	}
	o := &edit.Correct{Readings: q.Readings, Quoted: q.Quoted, Every: q.Every, Lines: q.Lines, Rest: q.Rest, Sections: slices.Clone(q.Quoted)}
	var exact, shown, likely []string
	add := func(list *[]string, files ...string) {
		for _, f := range files {
			if !slices.Contains(*list, f) {
				*list = append(*list, f)
			}
		}
	}
	for _, m := range q.Places {
		switch m.Kind {
		case rules.PathMention:
			add(&exact, site.ByPath(m.Text)...)
		case rules.URLMention:
			if f, anchor := site.Public(m.Text); f != "" {
				add(&shown, f)
				if anchor != "" {
					o.Anchors = append(o.Anchors, anchor)
				}
			}
		case rules.TitleMention:
			add(&likely, names.Files(m.Text)...)
			o.Sections = append(o.Sections, m.Text)
		}
	}
	o.In, o.Near = exact, likely
	if len(o.In) == 0 {
		o.In = shown
	}
	if len(o.In) == 0 && len(likely) == 1 {
		o.In = likely
	}
	return o
}

// unknownPage is a path in the request that leads to no page.
func unknownPage(q rules.Request, site *pages.Site, published string) string {
	missing := ""
	for _, m := range q.Places {
		if f, _ := site.Public(m.Text); m.Kind == rules.URLMention && m.At && f == "" && published != "" && host(m.Text) != host(published) {
			missing = m.Text // of another site
		}
		if m.Kind != rules.PathMention {
			continue
		}
		if len(site.ByPath(m.Text)) > 0 {
			return ""
		}
		missing = m.Text
	}
	return missing
}

func host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(u.Hostname(), "www.")
}

// asked carries out a request in people's words, if the documentation bears it out. It gives no result if the text names
// no change.
func (a *Agent) asked(ctx context.Context, b *builtin, prompt string, names *pages.Titles) (Result, bool, error) {
	q := rules.Read(prompt)
	op := correct(q, b.Site, names)
	if op == nil || q.Other {
		return Result{}, false, nil
	}
	if q.Limit != "" {
		return unsettled(op, fmt.Sprintf("%s may restrict what is meant, or ask for something else, and that is not known how to do", say.Quote(q.Limit)), nil, b.Site), true, nil
	}
	if name := unknownPage(q, b.Site, b.task.Project.SiteURL); name != "" {
		return unsettled(op, fmt.Sprintf("there is no page %s", say.Quote(name)), nil, b.Site), true, nil
	}
	op.Translated = b.translated
	b.ops = []edit.Operation{op}
	b.todos = []api.Todo{{ID: "1", Content: say.OneLine(op.Todo(), 200), Status: "pending", Priority: "medium"}}
	b.tell("Read the request in its own words")
	b.Meant = map[string]bool{}
	before := b.Save()
	err := b.Do(op)
	if d, ok := err.(*edit.Doubt); ok && len(d.Files) == 0 && len(op.In) > 0 && !slices.ContainsFunc(q.Places, strong(b.Site)) {
		b.Restore(before)
		op.In = nil
		err = b.Do(op)
	}
	if d, ok := err.(*edit.Doubt); ok {
		return unsettled(op, d.Why, d, b.Site), true, nil
	}
	if err != nil {
		res, err := b.refused(ctx, 0, err)
		return res, true, err
	}
	b.todos[0].Status = "completed"
	b.tell(strings.Join(b.Done, ". "))
	for _, s := range q.Ignored[:min(len(q.Ignored), 10)] {
		b.Kept("Not read: %s", say.Quote(s))
	}
	res, err := b.finish(ctx)
	if err == nil && len(res.Changes) > 0 {
		res.Draft = res.Draft || len(q.Ignored) > 0
		res.Review = true
	}
	return res, true, err
}

// strong reports whether a mention names a page beyond doubt.
func strong(site *pages.Site) func(m rules.Mention) bool {
	return func(m rules.Mention) bool {
		if m.Kind == rules.PathMention {
			return len(site.ByPath(m.Text)) > 0
		}
		f, _ := site.Public(m.Text)
		return m.Kind == rules.URLMention && f != ""
	}
}

// unsettled asks for what a request leaves open: it says what was understood, what is missing, and what to write instead.
func unsettled(op *edit.Correct, why string, d *edit.Doubt, site *pages.Site) Result {
	p := op.Readings[0].Pairs[0]
	if d != nil && d.Pair.Old != "" {
		p = d.Pair
	}
	var b strings.Builder
	fmt.Fprintf(&b, "More detail is needed: %s. Nothing was changed.\n\nUnderstood: %s is to become %s", why, say.Quote(p.Old), say.Quote(p.New))
	switch {
	case len(op.In) > 0:
		fmt.Fprintf(&b, " in %s", shownFiles(op.In, site))
	case d != nil && len(d.Files) > 0:
		fmt.Fprintf(&b, "; the text stands in %s", shownFiles(d.Files, site))
	}
	b.WriteString(".")
	if d != nil && len(d.Forms) > 0 {
		b.WriteString("\n\nSay which is meant, by one of these:\n")
		for _, f := range d.Forms {
			b.WriteString("\n- " + f)
		}
	}
	return nothing(b.String(), api.OutcomeNeedsDetail)
}

func shownFiles(files []string, site *pages.Site) string {
	var out []string
	for _, f := range files {
		out = append(out, site.Show(f))
	}
	return say.List(out)
}
