package host

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"docent/forge/failure"
	"docent/internal/brief"
)

// A Comment is what somebody wrote on a pull request of a code host: in its conversation, as the text of a review, or
// on a line of its changes.
type Comment struct {
	ID       string // unique within the pull request, over all kinds of comments: "issue/123", "review/456"
	Author   string // the host's name of the account
	MayWrite bool   // the host says that the author may push to the repository
	Own      bool   // Docent wrote it: it bears the mark, and comes from somebody who may write
	Body     string // Markdown, as it was written
	Path     string // of the file, if it is about one
	Line     int    // of that file; zero if it is about the whole of it
	Old      bool   // the line is one of the file before the change
	Quote    string // the line or lines, if the host tells them
	Thread   string // what replies to it go under; empty in the conversation
	Link     string
	At       time.Time // when it appeared: what belongs to a review does so when that is handed in

	account string // asked for the right to write; nobody is if it is empty
	ours    bool   // written by the app that Docent acts as
}

const (
	maxPages = 60       // of one listing
	perPage  = 50       // comments may be long, and answers are bounded
	maxBody  = 64 << 10 // of a comment: no instruction is longer
	maxReply = 48 << 10 // what is answered; GitHub takes 65,536 characters
)

// mark ends what Docent writes on a pull request. The key says in answer to what.
func mark(key string) string { return "<!-- docent:" + key + " -->" }

// marked is the key of the mark that a comment's text ends with. One that quotes such a comment has none.
func marked(body string) (key string, ok bool) {
	line := strings.TrimRight(body, " \t\r\n")
	if i := strings.LastIndexByte(line, '\n'); i >= 0 {
		line = line[i+1:]
	}
	key, ok = strings.CutPrefix(strings.TrimSpace(line), "<!-- docent:")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(key, " -->")
}

// pages calls list for one page after the other until there is none; list answers whether there is a next one, and
// with how many comments that no page before had. A host that gives the same page again ends it, too.
func (c *client) pages(list func(page int) (fresh int, more bool, err error)) error {
	for page := 1; page <= maxPages; page++ {
		fresh, more, err := list(page)
		if err != nil {
			return err
		}
		if !more || fresh == 0 {
			return nil
		}
	}
	return failure.Misconfigured("A pull request of %s has more than %d comments: no more of it is read.", c.repo,
		maxPages*perPage)
}

// unseen remembers what has been listed.
type unseen map[int64]bool

// first reports whether an id is met for the first time.
func (u unseen) first(id int64) bool {
	if u[id] {
		return false
	}
	u[id] = true
	return true
}

// judged are the comments that appeared at since or later, oldest first, with what their authors may do.
func (c *client) judged(
	ctx context.Context, list []Comment, since time.Time, may func(ctx context.Context, account string) (bool, error),
) ([]Comment, error) {
	list = slices.DeleteFunc(list, func(x Comment) bool { return x.At.Before(since) })
	slices.SortStableFunc(list, func(a, b Comment) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) })
	for i := range list {
		x := &list[i]
		_, bears := marked(x.Body)
		if x.ours {
			x.MayWrite, x.Own = true, bears
		} else {
			writes, err := c.writer(ctx, x.account, may)
			if err != nil {
				return nil, err
			}
			x.MayWrite, x.Own = writes, writes && bears
		}
		if !webLink(x.Link) {
			x.Link = ""
		}
		if len(x.Body) > maxBody {
			x.Body = brief.Bytes(x.Body, maxBody, "…")
		}
	}
	return list, nil
}

// answeredAlready reports whether one of the comments is the reply with the key.
func (c *client) answeredAlready(
	ctx context.Context, list []Comment, key string, may func(ctx context.Context, account string) (bool, error),
) (bool, error) {
	x, err := c.withMark(ctx, list, key, may)
	return x.ID != "", err
}

// withMark is the comment with a key's mark; its ID is empty if there is none. A mark counts if its author may write:
// anybody can type one.
func (c *client) withMark(
	ctx context.Context, list []Comment, key string, may func(ctx context.Context, account string) (bool, error),
) (Comment, error) {
	for _, x := range list {
		if has, ok := marked(x.Body); !ok || has != key {
			continue
		}
		if x.ours {
			return x, nil
		}
		if writes, err := c.writer(ctx, x.account, may); err != nil || writes {
			return x, err
		}
	}
	return Comment{}, nil
}

// say writes the comment with a key's mark, or has the one that is there say this.
func (c *client) say(
	ctx context.Context, list []Comment, key, body, kind string, first bool, may func(ctx context.Context, account string) (bool, error),
	write func(body string) error, change func(id int64, body string) error,
) error {
	body = reply(Comment{}, key, body, false)
	was, err := c.withMark(ctx, list, key, may)
	switch id, numbered := numberOf(was.ID, kind); {
	case err != nil:
		return err
	case !numbered && !first:
		return nil
	case !numbered:
		return write(body)
	case strings.ReplaceAll(was.Body, "\r\n", "\n") == body:
		return nil
	default:
		return change(id, body)
	}
}

// A verdict is what the host said of an account's right to write.
type verdict struct {
	writes bool
	until  time.Time
}

const verdictLasts = time.Minute

// writer reports whether the host lets an account write to the repository. What it says holds for a minute; a question
// that fails is answered with an error, so that nobody may write meanwhile and nothing is passed over permanently.
func (c *client) writer(
	ctx context.Context, account string, may func(ctx context.Context, account string) (bool, error),
) (bool, error) {
	if account == "" {
		return false, nil
	}
	h, now := c.hosts, c.now()
	key := fmt.Sprint(c.base, " ", c.what, " ", strings.ToLower(c.repo), " ", account)
	h.mu.Lock()
	v, known := h.verdicts[key]
	h.mu.Unlock()
	if known && now.Before(v.until) && !v.until.After(now.Add(verdictLasts)) { // nor if the clock went back
		return v.writes, nil
	}
	writes, err := may(ctx, account)
	if err != nil {
		return false, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.verdicts) > 4096 {
		for k, old := range h.verdicts {
			if !now.Before(old.until) {
				delete(h.verdicts, k)
			}
		}
		if len(h.verdicts) > 4096 {
			clear(h.verdicts)
		}
	}
	h.verdicts[key] = verdict{writes: writes, until: now.Add(verdictLasts)}
	return writes, nil
}

// reply is the text of an answer with its mark. If it cannot stand in the thread that it belongs to, it says what it
// answers.
func reply(to Comment, key, body string, inThread bool) string {
	body = strings.TrimSpace(brief.Bytes(strings.ToValidUTF8(body, "\uFFFD"), maxReply, "…"))
	if to.Thread != "" && !inThread {
		body = about(to) + body
	}
	return body + "\n\n" + mark(key)
}

// about says in Markdown which comment an answer is for: its author, its place, and how it begins. The comment's own
// Markdown shows as it was typed, and names in it notify nobody once more.
func about(to Comment) string {
	what := "a comment"
	if to.Author != "" {
		what = "the comment of " + Escaped(to.Author)
	}
	if webLink(to.Link) && !strings.ContainsAny(to.Link, " <>()\\\n\t") {
		what = "[" + what + "](" + to.Link + ")"
	}
	if to.Path != "" {
		what += " on " + Escaped(failure.Line(to.Path, 200))
		if to.Line > 0 {
			what += fmt.Sprintf(", line %d", to.Line)
		}
	}
	out := "In answer to " + what + ":\n"
	for line := range strings.Lines(to.Body) {
		if line = failure.Line(line, 160); line != "" {
			out += "> " + Escaped(line) + "\n"
			break
		}
	}
	return out + "\n"
}

// Escaped is a text as Markdown that shows it. A word joiner after "@" and "#" keeps hosts from making links of names
// and numbers.
func Escaped(text string) string {
	var b strings.Builder
	for _, r := range text {
		if strings.ContainsRune("\\`*_{}[]<>()#+-.!|~$&:=^", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
		if r == '@' || r == '#' || r == '!' {
			b.WriteRune('\u2060')
		}
	}
	return b.String()
}

// quoteOf is the end of a hunk of a diff, which hosts cut at the line that a comment is about: that many lines of its
// old or new side, without their signs.
func quoteOf(hunk string, old bool, lines int) string {
	other := byte('-')
	if old {
		other = '+'
	}
	var out []string
	all := strings.Split(strings.TrimRight(hunk, "\n"), "\n")
	for i := len(all) - 1; i > 0 && len(out) < min(max(lines, 1), 40); i-- { // the first names the hunk
		line := strings.TrimSuffix(all[i], "\r")
		if line == "" || line[0] == '\\' {
			continue
		}
		if line[0] == other {
			if len(out) == 0 {
				return "" // it does not end where it should
			}
			continue
		}
		out = append(out, line[1:])
	}
	slices.Reverse(out)
	return brief.Bytes(strings.Join(out, "\n"), 4<<10, "…")
}
