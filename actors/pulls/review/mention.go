package review

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

	"docent/internal/brief"
	"docent/internal/cell"
)

// mostRead is how many bytes of a comment are read as Markdown. A longer one is no instruction that a job would take.
const mostRead = 128 << 10

// A said is a comment as it is read.
type said struct {
	Addressed bool   // it names the agent, in text that its author wrote
	Elsewhere bool   // it begins with the name of somebody else
	Text      string // without what it quotes, what readers do not see, and the agent's name at its beginning
	Quoted    string // what it quotes
}

// Kinds are the parsers of what is said on pull requests, which the program runs apart.
func Kinds() []cell.Kind {
	return []cell.Kind{{Name: kindComment, Time: 2 * time.Second, MaxInput: 2 * mostRead, MaxOutput: 4 * mostRead,
		Read: cell.Values(func(in commentInput) (said, error) { return read(in.Body, in.Handle), nil })}}
}

const kindComment = "comment"

type commentInput struct{ Body, Handle string }

// readApart is read, in the cell.
func readApart(ctx context.Context, apart cell.Func, body, handle string) (said, error) {
	return cell.Call[said](ctx, apart, kindComment, commentInput{body[:min(len(body), mostRead+utf8.UTFMax)], handle})
}

// mayAddress reports whether a comment has the agent's name at all, wherever it stands.
func mayAddress(body, handle string) bool {
	return strings.Contains(strings.ToLower(body), "@"+strings.ToLower(handle))
}

// read reads a comment as Markdown. A name in a quotation, in code, in a link or in raw HTML addresses nobody: it was
// written by others, or is shown and not said.
func read(body, handle string) said {
	body = brief.Bytes(body, mostRead, "")
	src := []byte(strings.ReplaceAll(strings.ReplaceAll(body, "\r\n", "\n"), "\r", "\n"))
	var out said
	var drop []span // of src
	var run span    // of text that is one piece in the source
	mentions := func() {
		for _, m := range mentionsIn(src, run) {
			if strings.EqualFold(string(src[m.from+1:m.to]), handle) {
				out.Addressed = true
				drop = append(drop, m)
			} else if len(bytes.TrimSpace(src[:m.from])) == 0 {
				out.Elsewhere = true
			}
		}
		run = span{}
	}
	var quotes []span
	_ = ast.Walk(goldmark.DefaultParser().Parse(text.NewReader(src)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Blockquote:
			mentions()
			quotes = append(quotes, linesOf(src, n))
			return ast.WalkSkipChildren, nil
		case *ast.CodeSpan, *ast.CodeBlock, *ast.FencedCodeBlock, *ast.Link, *ast.Image, *ast.AutoLink:
			mentions()
			return ast.WalkSkipChildren, nil
		case *ast.HTMLBlock:
			mentions()
			drop = append(drop, comments(src, blockSpan(n))...)
			return ast.WalkSkipChildren, nil
		case *ast.RawHTML:
			mentions()
			if s := segments(n.Segments); s.to > s.from && bytes.HasPrefix(src[s.from:s.to], []byte("<!--")) {
				drop = append(drop, s)
			}
			return ast.WalkSkipChildren, nil
		case *ast.Text:
			if s := (span{n.Segment.Start, n.Segment.Stop}); s.from == run.to && run.to > 0 {
				run.to = s.to
			} else {
				mentions()
				run = s
			}
		}
		return ast.WalkContinue, nil
	})
	mentions()
	for _, q := range quotes {
		out.Quoted += string(src[q.from:q.to])
	}
	out.Quoted = strings.TrimSpace(out.Quoted)
	out.Text = tidy(src, append(drop, quotes...))
	return out
}

// A span is a part of a source, half-open.
type span struct{ from, to int }

// mentionsIn finds @names in a run of text.
func mentionsIn(src []byte, in span) []span {
	var out []span
	for at := in.from; at < in.to; at++ {
		if src[at] != '@' {
			continue
		}
		before, _ := utf8.DecodeLastRune(src[:at])
		end := at + 1
		for end < in.to && inName(src[end]) {
			end++
		}
		for end > at+1 && (src[end-1] == '.' || src[end-1] == '-') { // the end of a sentence
			end--
		}
		after, _ := utf8.DecodeRune(src[end:])
		if end > at+1 && (at == 0 || !wordy(before)) && after != '/' && after != '@' && !unicode.IsLetter(after) {
			out = append(out, span{at, end})
		}
	}
	return out
}

// inName reports whether code hosts allow a byte in the name of a user.
func inName(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '-' || b == '_' || b == '.'
}

// wordy are the characters after which an @ is part of something else, such as an email address.
func wordy(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_.-+/@=%", r)
}

// blockSpan is where the lines of a block are.
func blockSpan(n ast.Node) span {
	s := segments(n.Lines())
	if html, ok := n.(*ast.HTMLBlock); ok && html.HasClosure() && html.ClosureLine.Stop > s.to {
		s.to = html.ClosureLine.Stop
	}
	return s
}

func segments(list *text.Segments) span {
	if list == nil || list.Len() == 0 {
		return span{}
	}
	return span{list.At(0).Start, list.At(list.Len() - 1).Stop}
}

// linesOf are the whole lines of a quotation, with its empty ones.
func linesOf(src []byte, quote ast.Node) span {
	s := span{len(src), 0}
	_ = ast.Walk(quote, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		at := span{}
		if n.Type() == ast.TypeBlock {
			at = blockSpan(n)
		} else if t, ok := n.(*ast.Text); ok {
			at = span{t.Segment.Start, t.Segment.Stop}
		}
		if at.to > at.from {
			s.from, s.to = min(s.from, at.from), max(s.to, at.to)
		}
		return ast.WalkContinue, nil
	})
	if s.to <= s.from {
		return span{}
	}
	s.from = bytes.LastIndexByte(src[:s.from], '\n') + 1
	s.to = lineEnd(src, max(s.to-1, s.from))
	for s.to < len(src) && bytes.HasPrefix(bytes.TrimLeft(src[s.to:], " "), []byte(">")) {
		s.to = lineEnd(src, s.to)
	}
	return s
}

// lineEnd is where the line after the one of a byte begins.
func lineEnd(src []byte, at int) int {
	if i := bytes.IndexByte(src[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(src)
}

// comments finds what HTML hides from readers.
func comments(src []byte, in span) []span {
	var out []span
	for at := in.from; at < in.to; {
		i := bytes.Index(src[at:in.to], []byte("<!--"))
		if i < 0 {
			break
		}
		from := at + i
		at = in.to
		if j := bytes.Index(src[from:in.to], []byte("-->")); j >= 0 {
			at = from + j + len("-->")
		}
		out = append(out, span{from, at})
	}
	return out
}

// tidy is the text without some parts of it. Of the agent's name at the beginning the punctuation goes too, and the
// rest is put together as one would have written it without the name.
func tidy(src []byte, drop []span) string {
	slices.SortFunc(drop, func(a, b span) int { return a.from - b.from })
	var b strings.Builder
	at := 0
	for _, d := range drop {
		if d.to <= at {
			continue
		}
		b.Write(src[at:max(at, d.from)])
		at = d.to
		if src[d.from] != '@' {
			continue
		}
		said := b.String()
		rest := bytes.TrimLeft(src[at:], " \t")
		if strings.TrimSpace(said) == "" {
			at = len(src) - len(bytes.TrimLeft(rest, ",:;-– \t"))
		} else if strings.HasSuffix(said, " ") || strings.HasSuffix(said, "\n") {
			at = len(src) - len(rest) // one blank is enough
		}
	}
	b.Write(src[at:])
	return strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(b.String(), "\x00", ""), "\uFFFD"))
}
