package markup

import (
	"bytes"
	"cmp"
	"slices"
	"sort"
	"strings"

	"docent/internal/brief"
)

// finish pairs tags, resolves references and builds the runs.
func (s *scanner) finish() {
	p := s.p
	for _, i := range s.open {
		if i >= 0 {
			s.unclosed(i)
		}
	}
	// Text within <code> and <pre> is code.
	var zones []zone
	for i := range p.Tags {
		t := &p.Tags[i]
		if t.Close || t.Partner < 0 {
			continue
		}
		if t.Name == "code" || t.Name == "pre" {
			inner := Span{t.Span.End, p.Tags[t.Partner].Span.Start}
			if n := len(zones); n > 0 && inner.Start < zones[n-1].End {
				continue
			}
			zones = append(zones, zone{inner, t.Name == "pre"})
			p.Code = append(p.Code, Code{Span: Span{t.Span.Start, p.Tags[t.Partner].Span.End}, Inner: inner,
				Inline: t.Name == "code"})
		}
	}
	slices.SortStableFunc(p.Scripts, func(a, b Span) int { return a.Start - b.Start })
	slices.SortStableFunc(p.Code, func(a, b Code) int { return a.Span.Start - b.Span.Start })
	for _, r := range s.refs {
		dest, ok := s.defs[labelKey(r.label)]
		if !ok {
			if r.whole.End > r.inner.End+1 {
				p.Undefined = append(p.Undefined, Link{Kind: ReferenceLink, Span: r.whole, Inner: r.inner})
			}
			continue
		}
		p.Links = append(p.Links, Link{Kind: ReferenceLink, Dest: dest, Span: r.whole, At: Span{r.whole.End, r.whole.End},
			Inner: r.inner, Label: labelKey(r.label)})
		s.mark(r.whole.Start, r.inner.Start, markHidden)
		s.mark(r.inner.End, r.whole.End, markHidden)
		if r.whole.End <= r.inner.End+3 { // [label] and [label][]: a change of the text would lose the definition
			s.mark(r.inner.Start, r.inner.End, markOther)
		}
	}
	slices.SortStableFunc(p.Links, func(a, b Link) int {
		return cmp.Or(a.Span.Start-b.Span.Start, b.Span.End-a.Span.End)
	})
	linkEnd := 0
	p.Links = slices.DeleteFunc(p.Links, func(l Link) bool { // an address within a link's text is text
		if l.Kind == InlineLink {
			linkEnd = max(linkEnd, l.Span.End)
		}
		return l.Kind == AutoLink && l.Span.Start < linkEnd
	})
	s.buildRuns(zones)
	for i := range p.Links {
		if l := &p.Links[i]; l.Text == "" && l.Inner.Start < l.Inner.End {
			l.Text = p.Plain(l.Inner)
			s.steps += l.Inner.End - l.Inner.Start
		}
	}
	p.nameHeadings()
	sort.SliceStable(s.lost, func(i, j int) bool { return s.lost[i].at < s.lost[j].at })
	line, at := 1, 0
	for _, l := range s.lost[:min(len(s.lost), maxProblems)] {
		line += bytes.Count(p.Src[at:l.at], []byte{'\n'})
		at = l.at
		p.Problems = append(p.Problems, Problem{Line: line, Message: l.msg})
	}
}

// nameHeadings gives each heading its text and its anchor.
func (p *Page) nameHeadings() {
	slugs, notes := slugger{}, p.numbered()
	for i := range p.Headings {
		h := &p.Headings[i]
		for ; len(notes) > 0 && notes[0] < h.Span.Start; notes = notes[1:] {
			slugs.anchor(p, "")
		}
		h.Text, h.Named = p.Plain(h.Inner), p.render(h.Inner, rendering{fences: true, bare: true})
		if h.Text != h.Named && !strings.ContainsAny(h.Text, "¶§🔗") { // the sign of a link to it has a title
			h.Text = brief.Line(h.Text)
		}
		if h.Typeset = h.Named; strings.Contains(h.Text, "--") {
			h.Typeset = p.render(h.Inner, rendering{fences: true, bare: true, dashes: true})
		}
		switch {
		case h.Custom && p.Format == RST: // a label is another identifier of its title
			h.Anchor = slugs.anchor(p, h.Anchor)
			slugs.anchor(p, h.Named)
		case h.Custom:
			slugs.take(h.Anchor)
		default:
			h.Anchor = slugs.anchor(p, h.Named)
		}
	}
}

// A zone is text within <code>, or within <pre>.
type zone struct {
	Span
	block bool
}

// A runBuilder makes the runs of a page.
type runBuilder struct {
	p       *Page
	zones   []zone // text that is code
	zone    int    // the first that does not end before
	pending separator
	prev    int // where the last run ended
}

// raise notes what stands between the last run and the next.
func (b *runBuilder) raise(x separator) { b.pending = max(b.pending, x) }

func (b *runBuilder) add(from, to int, k runKind) {
	if from >= to {
		return
	}
	b.p.runs = append(b.p.runs, run{Span{from, to}, k, b.pending})
	if k == runProse {
		b.p.Prose = append(b.p.Prose, Span{from, to})
	}
	b.pending = sepNone
	b.prev = to
}

// text adds a stretch that no mark covers.
func (b *runBuilder) text(from, to int) {
	for from < to {
		for b.zone < len(b.zones) && b.zones[b.zone].End <= from {
			b.zone++
		}
		kind, e := runProse, to
		if b.zone < len(b.zones) {
			if z := b.zones[b.zone]; z.Start <= from {
				kind, e = runCode, min(to, z.End)
				if z.block {
					kind = runPre
				}
				if z.block && (from == z.Start || b.prev <= z.Start) {
					b.raise(sepLine)
				}
			} else {
				e = min(to, z.Start)
			}
		}
		if in := b.p.Src[from:e]; len(bytes.TrimSpace(in)) > 0 {
			b.add(from, e, kind)
		} else if bytes.IndexByte(in, '\n') >= 0 || len(b.p.runs) > 0 {
			b.raise(sepSpace)
		}
		from = e
	}
}

// line adds a stretch that stands on lines of its own.
func (b *runBuilder) line(k mark, kind runKind) {
	b.raise(sepLine)
	b.add(k.Start, k.End, kind)
	b.raise(sepLine)
}

// marked adds what a mark leaves of its stretch.
func (b *runBuilder) marked(k mark, leaf Span) {
	switch k.kind {
	case markHidden:
		if bytes.IndexByte(b.p.Src[k.Start:k.End], '\n') >= 0 {
			b.raise(sepSpace)
		}
	case markTag:
		if k.Start == leaf.Start || newlineBefore(b.p.Src, k.Start) || newlineAfter(b.p.Src, k.End) {
			b.raise(sepLine)
		}
	case markSpace:
		b.raise(sepSpace)
	case markBreak:
		b.raise(sepLine)
	case markEntity:
		b.add(k.Start, k.End, runEntity)
	case markOther:
		b.add(k.Start, k.End, runOther)
	case markCode:
		b.add(k.Start, k.End, runCode)
	case markAttr:
		b.line(k, runAttr)
	case markFence:
		b.line(k, runFence)
	}
}

// buildRuns makes the runs of a page out of its leaves and what was marked in them.
func (s *scanner) buildRuns(zones []zone) {
	p := s.p
	slices.SortStableFunc(s.marks, func(a, b mark) int {
		return cmp.Or(a.Start-b.Start, b.End-a.End)
	})
	slices.SortStableFunc(s.leaves, func(a, b Span) int { return a.Start - b.Start })
	p.runs = make([]run, 0, len(s.marks)+len(s.leaves))
	b, m := &runBuilder{p: p, zones: zones, prev: p.Body.Start}, 0
	for _, leaf := range s.leaves {
		if leaf.Start < b.prev { // never, unless two leaves overlap
			continue
		}
		b.raise(sepLine)
		if blankBetween(p.Src[b.prev:leaf.Start]) {
			b.raise(sepBlank)
		}
		cur := leaf.Start
		for ; m < len(s.marks) && s.marks[m].Start < leaf.End; m++ {
			k := s.marks[m]
			if k.End <= cur {
				continue
			}
			k.Start = max(k.Start, cur)
			k.End = min(k.End, leaf.End)
			b.text(cur, k.Start)
			cur = k.End
			b.marked(k, leaf)
		}
		b.text(cur, leaf.End)
		b.prev = max(b.prev, leaf.End)
	}
}

func newlineBefore(src []byte, i int) bool {
	for i > 0 && (src[i-1] == ' ' || src[i-1] == '\t') {
		i--
	}
	return i == 0 || src[i-1] == '\n'
}

// newlineAt reports whether a line ends right here.
func newlineAt(src []byte, i int) bool {
	return i < len(src) && src[i] == '\n' || i+1 < len(src) && src[i] == '\r' && src[i+1] == '\n'
}

func newlineAfter(src []byte, i int) bool {
	for i < len(src) && (src[i] == ' ' || src[i] == '\t' || src[i] == '\r') {
		i++
	}
	return i == len(src) || src[i] == '\n'
}

func blankBetween(b []byte) bool {
	n := 0
	for _, c := range b {
		switch c {
		case '\n':
			if n++; n == 2 {
				return true
			}
		case ' ', '\t', '\r', '>':
		default:
			n = 0
		}
	}
	return false
}
