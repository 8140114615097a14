package remote

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"unicode"

	"docent/internal/brief"
	"docent/model"
	"docent/model/builtin"
	"docent/model/claims"
)

// What becomes of a claim that no passage supports.
const (
	ClaimsRemove = "remove" // it is taken out
	ClaimsMark   = "mark"   // it is said to be unsure
	ClaimsOff    = "off"    // nobody looks
)

const (
	maxChanges    = 32 // that a result lists
	longestChange = 200
)

// A checker stands between a model and its reader. It holds each sentence until it is complete, and lets it through
// when a passage says it. What it never lets through, whatever the setting: links and images to where nobody sent the
// reader, the model's instructions, and blocks that only look like a part of the page.
type checker struct {
	mode  string
	judge Judge
	req   *model.Request
	emit  func(model.Delta) error

	split    claims.Splitter
	passages map[int]*model.Passage // by the index that a Delta has
	order    []int
	texts    map[int]*claims.Text // read when they are needed
	own      *claims.Text         // what the reader selected and was answered before: supports, and is not cited
	asked    *claims.Text
	places   claims.Places
	ready    bool
	secret   *withheld
	language string

	result model.Checked
	cited  []int
	kept   int  // claims that went through
	wrote  bool // something did
	said   strings.Builder

	waiting []output // what leads to the next claim, and goes only with it
	gap     string   // what stood before pieces that were taken out
	cut     bool     // something was taken out since the oldest that waits
	block   block
	last    *claims.Claim // that went through, or nil if the last one did not

	queue    []output // from the first claim in doubt on, if there is a judge
	doubting bool
}

// An output is a piece as it goes to the reader.
type output struct {
	lead, text string
	cite       []int
	doubt      *doubt
}

// A doubt is a claim for the judge, with the passage that comes closest.
type doubt struct {
	claim, text string
	passage     int
	piece       claims.Piece
	why         string
}

// A block is the code or the table that the answer is in.
type block struct {
	kind  claims.Kind // Fence or Row; Sentence in neither
	begun bool        // a line of it went through
	drop  bool        // none goes through
	head  bool        // the line of a table was its head
	wrong bool        // a line of code is unsure
}

func (r *Model) checker(req *model.Request, emit func(model.Delta) error) *checker {
	k := &checker{mode: cmp.Or(r.Claims, ClaimsOff), judge: r.Judge, req: req, emit: emit,
		passages: map[int]*model.Passage{}, texts: map[int]*claims.Text{}}
	k.split.Emit = k.piece
	for i := range req.Passages {
		k.add(i, &req.Passages[i])
	}
	if req.Search != nil {
		req.Search = finding(k, req.Search)
	}
	if req.ReadPage != nil {
		req.ReadPage = finding(k, req.ReadPage)
	}
	return k
}

// finding takes the passages that a tool of the model finds.
func finding[T any](k *checker, find func(context.Context, T) ([]model.Found, error)) func(context.Context, T) ([]model.Found, error) {
	return func(ctx context.Context, what T) ([]model.Found, error) {
		found, err := find(ctx, what)
		for i := range found {
			k.add(found[i].Index, &found[i].Passage)
		}
		return found, err
	}
}

// add takes a passage that the model may have seen.
func (k *checker) add(index int, p *model.Passage) {
	if k.passages[index] != nil {
		return
	}
	k.passages[index] = p
	k.order = append(k.order, index)
	k.places.Page(p.URL)
	k.places.Text(p.Text)
}

// prepare reads what claims are held against besides passages, once the model writes.
func (k *checker) prepare() {
	if k.ready {
		return
	}
	k.ready = true
	var own strings.Builder
	for _, m := range k.req.History {
		if m.Role == "assistant" {
			own.WriteString(m.Text + "\n\n")
		}
	}
	for _, s := range k.req.Context {
		own.WriteString(s.Text + "\n\n")
	}
	k.own = claims.Read("", own.String())
	k.asked = claims.Read("", k.req.Question+"\n"+k.req.Project+"\n"+k.req.Deflection)
	if d := strings.TrimSpace(k.req.Deflection); d != "" {
		k.places.Text(d)
	}
	k.language = claims.Language(k.req.Question)
}

func (k *checker) text(index int) *claims.Text {
	t := k.texts[index]
	if t == nil {
		p := k.passages[index]
		t = claims.Read(p.Title+"\n"+p.Heading+"\n"+strings.Join(p.Trail, "\n"), p.Text)
		k.texts[index] = t
	}
	return t
}

// take takes what the model writes, and what it cites there.
func (k *checker) take(d model.Delta) error {
	if d.Text != "" {
		if err := k.split.Write(d.Text); err != nil {
			return err
		}
	}
	if len(d.Cite) > 0 && k.split.Cite(d.Cite) {
		return k.late(d.Cite)
	}
	return nil
}

// late cites what was cited after a line of its own: it belongs to the claim before it.
func (k *checker) late(cite []int) error {
	if k.last == nil || k.doubting {
		return nil
	}
	for _, i := range cite {
		if k.mode == ClaimsOff || k.last.Against(k.asked, k.text(i)).Verdict == claims.Supported {
			if err := k.send(output{cite: []int{i}}); err != nil {
				return err
			}
		}
	}
	return nil
}

// piece lets one piece of the answer through, or not.
func (k *checker) piece(p claims.Piece) error {
	k.prepare()
	raw := p.Text
	clean, changed := k.clean(p)
	for _, c := range changed {
		k.result.Unlinked++
		k.change(model.Change{Kind: "unlinked", Text: c, Why: "no passage leads there"})
	}
	if len(clean) != len(p.Text) {
		for i := range p.Cites {
			p.Cites[i].At = min(p.Cites[i].At, len(clean))
		}
	}
	p.Text = clean
	switch {
	case k.secret.in(p.Text):
		k.result.Withheld++
		k.change(model.Change{Kind: "withheld", Text: raw, Why: "it is a piece of the model's instructions"})
		return k.drop(p)
	case strings.TrimSpace(p.Text) == "" && p.Kind != claims.Code:
		return k.drop(p)
	}
	switch p.Kind {
	case claims.Fence:
		k.endTable()
		return k.fence(p)
	case claims.Code:
		return k.code(p)
	case claims.FenceEnd:
		return k.fenceEnd(p)
	case claims.Row:
		return k.row(p)
	case claims.Heading:
		k.endTable()
		return k.heading(p)
	}
	k.endTable()
	return k.sentence(p)
}

// sentence decides what a sentence is for, and of a claim, whether it goes through.
func (k *checker) sentence(p claims.Piece) error {
	c := claims.Parse(p.Text, false)
	role := claims.RoleOf(p)
	if k.mode == ClaimsOff {
		k.last = c
		return k.keep(p, cites(p), role == claims.Claims)
	}
	if role != claims.Claims && c.Facts() && k.unknown(c) != "" {
		role = claims.Claims // a greeting that names a port claims something
	}
	if role == claims.Admits && k.says(p, c) {
		role = claims.Claims
	}
	if role == claims.Claims && c.Empty() {
		role = claims.Leads
	}
	if k.cut && role != claims.Claims && paragraph(p.Lead) {
		k.abandon()
	}
	switch role {
	case claims.Leads, claims.Courts:
		k.waiting = append(k.waiting, k.output(p, nil))
		return nil
	case claims.Asks:
		return k.keep(p, nil, false)
	case claims.Points:
		return k.keep(p, k.about(c, cites(p)), false)
	case claims.Admits:
		k.last = nil
		return k.keep(p, nil, false)
	}
	if k.cut && paragraph(p.Lead) {
		k.abandon()
	}
	return k.claim(p, c)
}

// says reports whether a sentence that seems to say what the documentation does not say says something else: it cites a
// passage for it, or a passage says the opposite.
func (k *checker) says(p claims.Piece, c *claims.Claim) bool {
	return len(p.Cites) > 0 || slices.ContainsFunc(k.order, func(i int) bool { return c.Against(k.asked, k.text(i)).Denied })
}

// paragraph reports whether what stands before a piece begins a paragraph, and no item of a list.
func paragraph(lead string) bool {
	return strings.Count(lead, "\n") > 1 && strings.TrimSpace(lead) == ""
}

// abandon leaves out what led to something that was taken out.
func (k *checker) abandon() {
	for _, o := range k.waiting {
		k.gap = mergeLeads(k.gap, o.lead)
	}
	k.waiting, k.cut = nil, false
}

// unknown is a fact of a claim that stands in nothing that the model was given.
func (k *checker) unknown(c *claims.Claim) string {
	texts := []*claims.Text{k.own, k.asked}
	for _, i := range k.order {
		texts = append(texts, k.text(i))
	}
	_, missing := c.Known(texts...)
	if len(missing) > 0 {
		return missing[0]
	}
	return ""
}

// about are those of the passages that share something with a sentence that claims nothing.
func (k *checker) about(c *claims.Claim, cite []int) []int {
	return slices.DeleteFunc(cite, func(i int) bool { return c.Against(k.asked, k.text(i)).Verdict == claims.Unsupported })
}

func cites(p claims.Piece) (all []int) {
	for _, c := range p.Cites {
		for _, i := range c.Passages {
			if !slices.Contains(all, i) {
				all = append(all, i)
			}
		}
	}
	return all
}

// claim holds a claim against the passages that it cites, then against the others.
func (k *checker) claim(p claims.Piece, c *claims.Claim) error {
	k.result.Claims++
	cited := cites(p)
	finding, passages := k.support(p, c, cited)
	switch {
	case finding.Verdict == claims.Supported:
	case finding.Verdict == claims.Doubtful && k.judge != nil && len(passages) > 0:
		return k.doubt(p, c, passages[0], finding.Why, len(cited) > 0)
	case finding.Verdict == claims.Doubtful && len(cited) > 0 && len(passages) > 0:
	default:
		return k.unsupported(p, finding.Why)
	}
	if len(cited) > 0 && !slices.ContainsFunc(passages, func(i int) bool { return slices.Contains(cited, i) }) {
		k.result.Moved++
		k.change(model.Change{Kind: "moved", Text: p.Text, Why: "another passage says it", From: cited, To: slices.Clone(passages)})
	}
	k.last = c
	return k.keep(p, passages, true)
}

// support finds the passages that support a claim best. If none does, the finding is that of the one that comes
// closest.
func (k *checker) support(p claims.Piece, c *claims.Claim, cited []int) (claims.Finding, []int) {
	var texts []*claims.Text
	for _, i := range cited {
		texts = append(texts, k.text(i))
	}
	var best claims.Finding
	var at []int
	if len(cited) > 0 {
		if best = c.Against(k.asked, texts...); best.Verdict == claims.Supported && best.Score > clear {
			return best, k.contributing(p, c, cited)
		}
		if best.Verdict != claims.Unsupported {
			at = k.contributing(p, c, cited)
		}
	}
	closest, denied := best, claims.Finding{}
	if best.Denied {
		denied = best
	}
	for _, i := range k.order {
		f := c.Against(k.asked, k.text(i))
		if better(f, best, len(at) > 0 && at[0] != i && slices.Contains(cited, at[0])) {
			best, at = f, []int{i}
		}
		if f.Score > closest.Score {
			closest = f
		}
		if f.Denied && f.Score > denied.Score {
			denied = f
		}
	}
	// What one passage says the opposite of is not true because another one has some of its words.
	if denied.Denied && (best.Verdict != claims.Supported || best.Score < denied.Score) {
		return denied, nil
	}
	if best.Verdict == claims.Supported {
		return best, at
	}
	if f := c.Against(k.asked, k.own); f.Verdict == claims.Supported {
		return f, nil // of what the reader brought, or was told before
	}
	if len(cited) == 1 {
		if f, i := k.together(c, cited[0]); f.Verdict == claims.Supported {
			return f, []int{cited[0], i}
		}
	}
	if best.Verdict == claims.Unsupported && best.Why == "" {
		best.Why = cmp.Or(closest.Why, "nothing like it stands in a passage")
	}
	return best, at
}

// together finds the passage that says a claim together with one that is cited.
func (k *checker) together(c *claims.Claim, cited int) (claims.Finding, int) {
	for _, i := range k.order {
		if i == cited || c.Against(k.asked, k.text(i)).Score == 0 {
			continue
		}
		if f := c.Against(k.asked, k.text(cited), k.text(i)); f.Verdict == claims.Supported {
			return f, i
		}
	}
	return claims.Finding{}, 0
}

const (
	// A passage with so much of a claim is not compared with others.
	clear = 0.9
	// So much more than the passage that is cited another one has to have of a claim to be cited for it.
	muchMore = 0.15
)

// better reports whether a finding goes before another one, which may be that of what the model cites.
func better(f, than claims.Finding, cited bool) bool {
	margin := 0.0
	if cited {
		margin = muchMore
	}
	return f.Verdict > than.Verdict ||
		f.Verdict == than.Verdict && f.Verdict != claims.Unsupported && f.Score > than.Score+margin
}

// contributing are those of the cited passages that support the part of the sentence that their marker stands behind,
// or the sentence.
func (k *checker) contributing(p claims.Piece, c *claims.Claim, cited []int) []int {
	if len(cited) == 1 {
		return cited
	}
	var keep []int
	from := 0
	for n, m := range p.Cites {
		to := m.At
		if n == len(p.Cites)-1 {
			to = len(p.Text)
		}
		part := claims.Parse(p.Text[min(from, to):to], false)
		if to > from {
			from = to
		}
		for _, i := range m.Passages {
			if slices.Contains(keep, i) {
				continue
			}
			if !part.Empty() && part.Against(k.asked, k.text(i)).Verdict != claims.Unsupported ||
				c.Against(k.asked, k.text(i)).Verdict == claims.Supported {
				keep = append(keep, i)
			}
		}
	}
	if len(keep) == 0 { // they say it only together
		return cited
	}
	return keep
}

// unsupported takes a claim out, or marks it.
func (k *checker) unsupported(p claims.Piece, why string) error {
	k.last = nil
	if k.mode == ClaimsMark {
		k.result.Marked++
		k.change(model.Change{Kind: "marked", Text: p.Text, Why: why})
		p.Text = marked(p.Text, model.Unsure(k.reader()), p.Kind == claims.Row)
		return k.keep(p, nil, false)
	}
	k.result.Removed++
	k.change(model.Change{Kind: "removed", Text: p.Text, Why: why})
	return k.drop(p)
}

// reader is the reader's language.
func (k *checker) reader() string { return k.language }

// marked says behind a sentence that it is unsure, within the last cell of a row.
func marked(text, note string, row bool) string {
	if row {
		if at := strings.LastIndexByte(text, '|'); at > 0 {
			return strings.TrimRight(text[:at], " ") + " " + note + " " + text[at:]
		}
	}
	return strings.TrimRight(text, " ") + " " + note
}

// drop leaves a piece out, and keeps what stood before it for what comes next.
func (k *checker) drop(p claims.Piece) error {
	k.gap, k.cut = mergeLeads(k.gap, p.Lead), true
	return nil
}

// mergeLeads is what stands before a piece if others before it were taken out.
func mergeLeads(a, b string) string {
	na, nb := strings.Count(a, "\n"), strings.Count(b, "\n")
	switch {
	case a == "":
		return b
	case nb == 0: // the line goes on, and begins as it would have
		return a
	case nb >= na:
		return b
	}
	return strings.Repeat("\n", na) + strings.TrimLeft(b, "\n")
}

func (k *checker) output(p claims.Piece, cite []int) output {
	o := output{lead: mergeLeads(k.gap, p.Lead), text: p.Text, cite: cite}
	k.gap = ""
	return o
}

// keep lets a piece through, with what led to it.
func (k *checker) keep(p claims.Piece, cite []int, claim bool) error {
	if claim {
		k.kept++
	}
	return k.through(k.output(p, cite))
}

func (k *checker) through(o output) error {
	waiting := k.waiting
	k.waiting, k.cut = nil, false
	for _, w := range waiting {
		if err := k.put(w); err != nil {
			return err
		}
	}
	return k.put(o)
}

// put sends a piece, or has it wait behind one that is in doubt.
func (k *checker) put(o output) error {
	if k.doubting {
		k.queue = append(k.queue, o)
		return nil
	}
	return k.send(o)
}

func (k *checker) send(o output) error {
	if !k.wrote {
		o.lead = strings.TrimLeft(o.lead, " \n\r\t")
	}
	d := model.Delta{Text: o.lead + o.text}
	for _, i := range o.cite {
		if !slices.Contains(k.cited, i) {
			k.cited = append(k.cited, i)
			d.Cite = append(d.Cite, i)
		}
	}
	if d.Text == "" && len(d.Cite) == 0 {
		return nil
	}
	k.wrote = k.wrote || d.Text != ""
	if k.said.Len() < longestSaid {
		k.said.WriteString(d.Text)
	}
	return k.emit(d)
}

// longestSaid bounds what is kept of an answer, to see whether it names where to ask.
const longestSaid = 8192

func (k *checker) change(c model.Change) {
	if len(k.result.Changes) >= maxChanges {
		return
	}
	c.Text = strings.TrimSpace(c.Text)
	c.Text = brief.Runes(c.Text, longestChange, "…")
	k.result.Changes = append(k.result.Changes, c)
}

// heading waits for what stands below it.
func (k *checker) heading(p claims.Piece) error {
	if k.mode == ClaimsOff {
		return k.keep(p, nil, false)
	}
	if k.cut {
		k.abandon()
	}
	k.last = nil
	c := claims.Parse(p.Text, false)
	if why := k.unknown(c); why != "" || c.Words() >= 4 && !k.familiar(c) {
		k.result.Claims++
		return k.unsupported(p, cmp.Or(why, "nothing like it stands in a passage"))
	}
	k.waiting = append(k.waiting, k.output(p, nil))
	return nil
}

// familiar reports whether a third of a heading's words stand in what the model was given.
func (k *checker) familiar(c *claims.Claim) bool {
	texts := []*claims.Text{k.own, k.asked}
	for _, i := range k.order {
		texts = append(texts, k.text(i))
	}
	return c.Against(k.asked, texts...).Score >= 0.3
}

// fence begins code.
func (k *checker) fence(p claims.Piece) error {
	k.block = block{kind: claims.Fence}
	info := strings.ToLower(strings.Trim(p.Text, "`~ \t\r"))
	if info == "suggestions" || strings.HasPrefix(info, "suggestions ") {
		k.result.Withheld++
		k.change(model.Change{Kind: "withheld", Text: p.Text, Why: "only Docent offers further questions"})
		k.block.drop = true
		return k.drop(p)
	}
	if k.mode == ClaimsOff {
		k.block.begun = true
		return k.keep(p, nil, false)
	}
	k.waiting = append(k.waiting, k.output(p, nil))
	return nil
}

func (k *checker) code(p claims.Piece) error {
	switch {
	case k.block.drop:
		return nil
	case k.mode == ClaimsOff:
		return k.keep(p, nil, true)
	case strings.IndexFunc(p.Text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) < 0:
		if k.block.begun { // brackets and the like
			return k.keep(p, nil, false)
		}
		k.waiting = append(k.waiting, k.output(p, nil))
		return nil
	}
	c := claims.Parse(p.Text, true)
	k.result.Claims++
	passage, why := k.line(c)
	if why != "" {
		if k.mode == ClaimsRemove {
			k.result.Removed++
			k.change(model.Change{Kind: "removed", Text: p.Text, Why: why})
			k.last = nil
			return k.drop(p)
		}
		k.result.Marked++
		k.change(model.Change{Kind: "marked", Text: p.Text, Why: why})
		k.block.wrong = true
	}
	k.block.begun = true
	k.last = nil
	var cite []int
	if why == "" && passage >= 0 {
		cite = []int{passage}
	}
	return k.keep(p, cite, why == "")
}

// line says what is wrong with a line of code: it may name only what the model was given. Passage is the one that has
// most of it, or -1.
func (k *checker) line(c *claims.Claim) (passage int, why string) {
	passage, most := -1, 0.0
	texts := []*claims.Text{k.own, k.asked}
	for _, i := range k.order {
		t := k.text(i)
		texts = append(texts, t)
		if f := c.Against(k.asked, t); f.Verdict == claims.Supported && f.Score > most {
			passage, most = i, f.Score
		}
	}
	known, missing := c.Known(texts...)
	for _, m := range missing {
		if claims.Hard(m) {
			return -1, `"` + m + `" stands in no passage`
		}
	}
	if len(missing) > known {
		return -1, "nothing like it stands in a passage"
	}
	return passage, ""
}

func (k *checker) fenceEnd(p claims.Piece) error {
	b := k.block
	k.block = block{}
	if b.drop {
		return nil
	}
	if !b.begun && k.mode != ClaimsOff { // nothing of it was left
		if n := len(k.waiting); n > 0 {
			for n > 0 && !strings.HasPrefix(k.waiting[n-1].text, "```") && !strings.HasPrefix(k.waiting[n-1].text, "~~~") {
				n--
			}
			if n > 0 {
				k.gap = mergeLeads(k.waiting[n-1].lead, "")
				k.waiting = k.waiting[:n-1]
			}
		}
		k.cut = true
		return nil
	}
	if b.wrong {
		p.Text += "\n\n" + model.Unsure(k.reader())
	}
	return k.keep(p, nil, false)
}

// row takes a row of a table. Its head goes with the first row that goes through.
func (k *checker) row(p claims.Piece) error {
	if k.mode == ClaimsOff {
		return k.keep(p, cites(p), true)
	}
	if k.block.kind != claims.Row || strings.Count(p.Lead, "\n") > 1 {
		k.endTable()
		k.block = block{kind: claims.Row, head: true}
		k.waiting = append(k.waiting, k.output(p, nil))
		return nil
	}
	if k.block.head && strings.Trim(p.Text, "|-: \t") == "" {
		k.waiting = append(k.waiting, k.output(p, nil))
		return nil
	}
	k.block.head = false
	c := claims.Parse(p.Text, false)
	if c.Empty() {
		return k.keep(p, nil, false)
	}
	before := k.kept
	err := k.claim(p, c)
	k.block.begun = k.block.begun || k.kept > before || k.doubting
	return err
}

// endTable leaves out the head of a table of which no row went through.
func (k *checker) endTable() {
	if k.block.kind != claims.Row {
		return
	}
	if !k.block.begun && k.mode == ClaimsRemove {
		for len(k.waiting) > 0 && strings.HasPrefix(k.waiting[len(k.waiting)-1].text, "|") {
			k.gap = k.waiting[len(k.waiting)-1].lead
			k.waiting = k.waiting[:len(k.waiting)-1]
		}
	}
	k.block = block{}
}

// broken lets through what came of an answer that broke off, if nobody looks at its claims: half a sentence can say
// the opposite of the whole.
func (k *checker) broken() error {
	if k.mode != ClaimsOff {
		return nil
	}
	return k.split.Flush()
}

// end lets through what is left, and says what there is to say if nothing of the answer holds.
func (k *checker) end(ctx context.Context, result *model.Result) error {
	if err := k.split.Flush(); err != nil {
		return err
	}
	if k.block.kind == claims.Fence && k.mode == ClaimsRemove && !k.block.begun && !k.block.drop {
		if err := k.fenceEnd(claims.Piece{}); err != nil { // it was not closed, and has no line
			return err
		}
	}
	k.endTable()
	if err := k.judged(ctx, result); err != nil {
		return err
	}
	if k.cut {
		k.abandon()
	}
	if k.kept > 0 || k.result.Removed+k.result.Withheld == 0 {
		waiting := k.waiting
		k.waiting = nil
		for _, o := range waiting {
			if err := k.send(o); err != nil {
				return err
			}
		}
	}
	result.Answered = len(k.cited) > 0
	if k.mode != ClaimsOff || k.result.Unlinked+k.result.Withheld > 0 {
		checked := k.result
		result.Checked = &checked
	}
	return k.close(result)
}

// close ends an answer that the documentation does not give as any such answer ends: with what comes closest, and where
// else to ask.
func (k *checker) close(result *model.Result) error {
	if result.Answered {
		return nil
	}
	k.prepare()
	said, shown := k.said.String(), builtin.Closest(*k.req)
	shown.Text = k.harmless(shown.Text)
	var parts []string
	switch told := k.wrote && (k.result.Removed == 0 || claims.Admission(said)); {
	case shown.Text != "":
		parts = []string{shown.Text}
	case !told:
		parts = []string{k.req.Denied(k.reader())}
		said += parts[0]
	}
	if one := brief.Line(k.req.Deflection); one != "" && !strings.Contains(said, one) {
		parts = append(parts, k.req.AskHere(cmp.Or(claims.Language(said), k.reader())))
	}
	if k.wrote && len(parts) > 0 {
		parts[0] = "\n\n" + parts[0]
	}
	shown.Text = strings.Join(parts, "\n\n")
	if shown.Text == "" && len(shown.Cards) == 0 {
		return nil
	}
	return k.emit(shown)
}

// clean takes from a piece what leads to where neither a passage nor the site leads.
func (k *checker) clean(p claims.Piece) (text string, changed []string) {
	return k.places.Clean(p.Text, p.Kind == claims.Code || p.Kind == claims.Fence || p.Kind == claims.FenceEnd)
}

// harmless is what is shown of a page in an answer of a model, where nothing leads away from the documentation and nothing is
// taken for what the model suggests, no matter who wrote the page; empty if the page would have it otherwise.
func (k *checker) harmless(text string) string {
	if strings.Contains(text, "```suggestions") {
		return ""
	}
	var out strings.Builder
	split := claims.Splitter{Emit: func(p claims.Piece) error {
		clean, _ := k.clean(p)
		out.WriteString(p.Lead + clean)
		return nil
	}}
	_ = errors.Join(split.Write(text), split.Flush()) // only Emit fails, which does not
	return out.String() + split.Rest()
}
