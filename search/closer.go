package search

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"docent/search/lookup"
	"docent/search/page"
)

// lookCloser adds to the scores of candidates what titles, headings and the order of words tell.
func (s *snapshot) lookCloser(w *scratch, groups []group, total float32, candidates []candidate,
	started map[uint32]float32, q Query) {
	t := s.tuning
	asked := &w.asked
	for i := range groups {
		for _, v := range groups[i].variants {
			if v.weight >= 0.3 {
				asked.Put(v.hash, i)
			}
		}
	}
	w.others = w.others[:0]
	near := s.neighbourhood(&q)
	s.vote(candidates, total)
	for i := range candidates {
		c := &candidates[i]
		r := s.pages[c.page]
		extra := pageExtra{
			title: float32(t.TitleCover) * total * s.coverage(groups, asked, total, r.TitleWords, s.titleIDF.of(c.page)),
			near:  float32(t.Neighbourhood) * total * near(r), links: c.score - c.base,
		}
		// The best section, looked at closely.
		bestSection, bestScore, bestExtra := c.section, float32(-1), float32(0)
		floor := w.sectionScore.weight[c.section] * float32(t.CloserShare)
		from := len(w.others)
		for sec := s.firstOf[c.page]; sec < s.firstOf[c.page+1]; sec++ {
			score := w.sectionScore.weight[sec]
			if score == 0 || score < floor && (q.Sections < 2 || score < floor*floorOfOthers) {
				continue
			}
			look := s.lookAt(groups, asked, total, q.Text, sec)
			more := look.sum()
			sum := score*(1-float32(t.PageShare)) + more
			if q.Sections > 1 {
				w.others = append(w.others, other{sec, -sum})
			}
			if w.trace != nil {
				w.trace.section(sec, look)
			}
			if sum > bestScore && score >= floor {
				bestSection, bestScore, bestExtra = sec, sum, more-(1-float32(t.PageShare))*(w.sectionScore.weight[c.section]-score)
			}
		}
		c.section = bestSection
		c.others = w.others[from:]
		for k := range c.others {
			c.others[k].less = max(0, c.others[k].less+bestScore)
		}
		if share, ok := started[c.page]; ok {
			extra.start = total * float32(t.TitleStartBase+t.TitleStart*float64(share))
		}
		c.score += extra.title + bestExtra + extra.start + extra.near
		if r.Boost > 0 {
			// A wish of the author, not more: a page boosted ten times must not stand before every page that fits better.
			power := t.Boost
			if r.Boost < 1 {
				power = t.Demotion
			}
			unboosted := c.score
			c.score *= float32(math.Pow(float64(r.Boost), power))
			extra.boost = c.score - unboosted
		}
		if w.trace != nil {
			w.trace.page(c, extra)
		}
	}
}

// A pageExtra is what a closer look at a page adds to its score, by reason.
type pageExtra struct{ title, start, near, links, boost float32 }

// A sectionExtra is what a closer look at a section adds.
type sectionExtra struct{ heading, exact, named, proximity float32 }

func (x sectionExtra) sum() float32 { return x.heading + x.exact + x.named + x.proximity }

// lookAt looks at one section closely.
func (s *snapshot) lookAt(groups []group, asked *lookup.Groups, total float32, text string, sec uint32) (x sectionExtra) {
	t, rec := s.tuning, s.sections[sec]
	cover := s.coverage(groups, asked, total, rec.Head, s.headIDF.of(sec))
	x.heading = float32(t.HeadingCover) * total * cover
	if cover > 0.99 { // the query is the heading
		named := names(text, rec.Heading)
		if len(groups) > 1 || named && strings.Contains(rec.Heading, " ") {
			x.exact = float32(t.HeadingExact) * total
		}
		if named {
			x.named = float32(t.HeadingNamed) * total
		}
	}
	x.proximity = float32(t.Proximity) * s.proximity(groups, asked, rec)
	return x
}

// vote raises the candidates that others link to: what several pages on the subject refer to is the page that explains
// it. Votes count as much as their page fits.
func (s *snapshot) vote(candidates []candidate, total float32) {
	if s.tuning.Vote == 0 {
		return
	}
	var top float32
	for _, c := range candidates {
		top = max(top, c.base)
	}
	if top == 0 {
		return
	}
	for i := range candidates {
		c := &candidates[i]
		var votes float32
		for j := range candidates {
			if _, ok := slices.BinarySearch(s.linksTo[candidates[j].page], c.page); ok {
				votes += candidates[j].base / top
			}
		}
		c.score += float32(s.tuning.Vote) * total * votes / (votes + float32(s.tuning.VoteK))
	}
}

// names reports whether a query ends with a heading, word for word: "how do I install the app" names "Install the app"
// and not "Installing apps".
func names(query, heading string) bool {
	query, heading = plainTitle(query), plainTitle(page.WithoutCount(heading))
	rest, ok := strings.CutSuffix(query, heading)
	return ok && heading != "" && (rest == "" || strings.HasSuffix(rest, " "))
}

// coverage tells how well a title fits the query: the share of the title that was asked for, times the share of the
// query that is in the title, both by rarity.
func (s *snapshot) coverage(groups []group, asked *lookup.Groups, total float32, title page.WordList,
	rarity []float32) float32 {
	if !asked.AnyOf(title) {
		return 0
	}
	seen, covered, rest := namesAsked(asked, title)
	var inQuery, all float32
	for k, idf := range rarity {
		g, ok := asked.Get(title.At(k))
		if ok && g < 64 {
			seen |= 1 << g
		}
		switch {
		case ok || k < 64 && covered&(1<<k) != 0:
			inQuery += idf
			all += idf
		case k < 64 && rest&(1<<k) != 0:
			all += idf * float32(s.tuning.NameRest)
		default:
			all += idf * float32(s.tuning.UnknownCount)
		}
	}
	if inQuery == 0 {
		return 0
	}
	var found float32
	for g := range groups {
		if g < 64 && seen&(1<<g) != 0 {
			found += groups[g].idf
		}
	}
	return inQuery / all * found / total
}

// namesAsked looks for the names of a title. seen are the groups that ask for one, as bits: beyond 64 the share is
// underestimated. covered are the words of names that were asked for, rest those of names of which a word was.
func namesAsked(asked *lookup.Groups, title page.WordList) (seen, covered, rest uint64) {
	for _, name := range title.Names {
		var words uint64
		part := false
		for k := name.At; k < name.At+name.N && k < 64; k++ {
			words |= 1 << k
			part = part || asked.Has(title.At(int(k)))
		}
		if part {
			rest |= words
		}
		if g, ok := asked.Get(name.Hash); ok {
			covered |= words
			if g < 64 {
				seen |= 1 << g
			}
		}
	}
	return seen, covered, rest
}

// floorOfOthers is how much less than what can be a page's best section its others may score.
const floorOfOthers = 0.5

const nearBy = 8 // words

// proximity rewards words of the query that stand close to each other (BM25TP).
func (s *snapshot) proximity(groups []group, asked *lookup.Groups, rec *page.Section) float32 {
	if len(groups) < 2 {
		return 0
	}
	var acc [64]float32
	lastAt, lastGroup, any := -1, 0, false
	words := rec.Body.Words
	for from := 0; from < len(words); from += 16 {
		to := len(words)
		if from+16 <= len(words) { // four words at a time: mostly none of them was asked for
			four := (*[16]byte)(words[from:])
			h0, h1 := binary.LittleEndian.Uint32(four[0:]), binary.LittleEndian.Uint32(four[4:])
			h2, h3 := binary.LittleEndian.Uint32(four[8:]), binary.LittleEndian.Uint32(four[12:])
			if asked.NoneOf(h0, h1, h2, h3) {
				continue
			}
			to = from + 16
		}
		for at := from; at+4 <= to; at += 4 {
			g, ok := asked.Get(binary.LittleEndian.Uint32(words[at:]))
			if !ok || g >= 64 {
				continue
			}
			i := at / 4
			if lastAt >= 0 && lastGroup != g {
				if d := i - lastAt; d <= nearBy {
					x := 1 / float32(d*d)
					acc[g] += groups[lastGroup].idf * x
					acc[lastGroup] += groups[g].idf * x
					any = true
				}
			}
			lastAt, lastGroup = i, g
		}
	}
	if !any {
		return 0
	}
	b := s.tuning.B[page.FieldBody]
	k := float32(s.tuning.ProximityK) * float32(1-b+b*float64(rec.Len[page.FieldBody])/s.meanBody)
	var sum float32
	for g := range groups {
		if g == 64 {
			break
		}
		if a := acc[g]; a > 0 {
			sum += min(1, groups[g].idf) * a * (k + 1) / (k + a)
		}
	}
	return sum
}
