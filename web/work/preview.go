package work

import (
	"bytes"
	"context"
	"errors"
	"html/template"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	goldrender "github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"docent/api"
	"docent/forge"
	"docent/internal/cell"
	"docent/site/markup"
	"docent/web/console"
	"docent/web/diff"
)

// maxPreview is how large a page may be to be shown as its readers see it.
const maxPreview = 512 << 10

// A preview is a page in both versions, roughly as its readers see it.
type preview struct {
	Before, After []block
	TooLarge      bool
}

// A block of a page: a heading, a paragraph, a list.
type block struct {
	HTML    template.HTML
	Changed bool
}

// isPage reports whether a file is a page that can be shown as its readers see it.
func isPage(name string) bool {
	switch path.Ext(name) {
	case ".md", ".mdx", ".markdown":
		return true
	}
	return false
}

// preview shows a file of a pull request in both versions.
func (s *handler) preview(ctx context.Context, p api.PullRequest, f forge.FileDiff) (*preview, error) {
	out := &preview{}
	for _, side := range []struct {
		path   string
		before bool
		blocks *[]block
	}{{f.Path, false, &out.After}, {f.Path, true, &out.Before}} {
		if side.before && f.From != "" {
			side.path = f.From
		}
		src, err := s.Pulls.PullFile(ctx, p.ID, side.path, side.before)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, api.Named(err, "file")
		}
		if len(src) > maxPreview {
			return &preview{TooLarge: true}, nil
		}
		*side.blocks = s.blocks(ctx, p.Project, side.path, src)
	}
	texts := func(list []block) []string {
		out := make([]string, len(list))
		for i, b := range list {
			out[i] = string(b.HTML)
		}
		return out
	}
	old, new := diff.Changed(texts(out.Before), texts(out.After))
	for i := range out.Before {
		out.Before[i].Changed = old[i]
	}
	for i := range out.After {
		out.After[i].Changed = new[i]
	}
	return out, nil
}

const kindPreview = "preview of a page"

// PreviewKind returns the renderer of pages that a pull request changes, which the program runs in the cell.
func PreviewKind() cell.Kind {
	return cell.Kind{Name: kindPreview, Time: 3 * time.Second, MaxInput: 2 * maxPreview, MaxOutput: 8 << 20, Read: cell.Values(
		func(in previewInput) ([]block, error) { return readable(in.Name, in.Source) })}
}

type previewInput struct {
	Name   string
	Source []byte
}

// blocks is a page block by block, made in the cell; one that cannot be is shown as it is written.
func (s *handler) blocks(ctx context.Context, project api.ProjectID, name string, src []byte) []block {
	ctx, cancel := context.WithTimeout(cell.WithOwner(ctx, string(project)), console.MaxRendering)
	defer cancel()
	out, err := cell.Call[[]block](ctx, s.Cell, kindPreview, previewInput{name, src})
	if err != nil {
		s.Log.Warn("showing a text as plain text", "project", project, "bytes", len(src), "error", err)
		return []block{{HTML: template.HTML("<pre>" + template.HTMLEscapeString(strings.ToValidUTF8(string(src), "\uFFFD")) + "</pre>\n")}}
	}
	return out
}

// reader renders pages without anything from elsewhere: pictures are their descriptions, and only links to other sites
// lead anywhere.
var reader = goldmark.New(
	goldmark.WithExtensions(extension.Strikethrough, extension.TaskList,
		extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))),
	goldmark.WithRendererOptions(goldrender.WithNodeRenderers(util.Prioritized(plainLinks{}, 1))))

// plainLinks renders links and pictures.
type plainLinks struct{}

func (plainLinks) RegisterFuncs(r goldrender.NodeRendererFuncRegisterer) {
	r.Register(ast.KindImage, func(w util.BufWriter, src []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			w.WriteString(`<span class="picture">Picture: `)
		} else {
			w.WriteString(`</span>`)
		}
		return ast.WalkContinue, nil
	})
	r.Register(ast.KindLink, func(w util.BufWriter, src []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		dest := n.(*ast.Link).Destination
		outside := bytes.HasPrefix(dest, []byte("https://")) || bytes.HasPrefix(dest, []byte("http://"))
		switch {
		case entering && outside:
			w.WriteString(`<a rel="noreferrer nofollow" href="`)
			w.Write(util.EscapeHTML(util.URLEscape(dest, true)))
			w.WriteString(`">`)
		case entering:
			w.WriteString(`<span class="leads" title="`)
			w.Write(util.EscapeHTML(dest))
			w.WriteString(`">`)
		case outside:
			w.WriteString(`</a>`)
		default:
			w.WriteString(`</span>`)
		}
		return ast.WalkContinue, nil
	})
	r.Register(ast.KindAutoLink, func(w util.BufWriter, src []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering { // an address in angle brackets may have any scheme: it is shown, and leads nowhere
			w.Write(util.EscapeHTML(n.(*ast.AutoLink).Label(src)))
		}
		return ast.WalkContinue, nil
	})
	r.Register(ast.KindRawHTML, func(util.BufWriter, []byte, ast.Node, bool) (ast.WalkStatus, error) {
		return ast.WalkSkipChildren, nil
	})
	r.Register(ast.KindHTMLBlock, func(util.BufWriter, []byte, ast.Node, bool) (ast.WalkStatus, error) {
		return ast.WalkSkipChildren, nil
	})
}

// readable is a page block by block: its title, and what is left of its body once components, imports and comments are
// taken out.
func readable(name string, src []byte) ([]block, error) {
	page := markup.Parse(name, src)
	var out []block
	if title, _ := page.Front.Values["title"].(string); title != "" {
		out = append(out, block{HTML: template.HTML("<h1>" + template.HTMLEscapeString(title) + "</h1>")})
	}
	if about, _ := page.Front.Values["description"].(string); about != "" {
		out = append(out, block{HTML: template.HTML("<p class=\"dim\">" + template.HTMLEscapeString(about) + "</p>")})
	}
	body := []byte(bare(page))
	doc := reader.Parser().Parse(text.NewReader(body))
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		var b bytes.Buffer
		if err := reader.Renderer().Render(&b, body, n); err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(b.Bytes())) > 0 {
			out = append(out, block{HTML: template.HTML(b.String())}) // goldmark's, without raw HTML
		}
	}
	return out, nil
}

// bare is a page's body in Markdown alone.
func bare(p *markup.Page) string {
	type cut struct {
		markup.Span
		text string
	}
	var cuts []cut
	for _, t := range p.Tags {
		shown := ""
		for _, a := range t.Attrs {
			if a.Kind == "string" && !t.Close && (a.Name == "title" || a.Name == "label" || a.Name == "header") {
				shown = "**" + strings.NewReplacer("*", "", "\n", " ").Replace(string(p.Src[a.Value.Start:a.Value.End])) + "** "
			}
		}
		cuts = append(cuts, cut{t.Span, shown})
	}
	for _, c := range p.Comments {
		cuts = append(cuts, cut{c, ""})
	}
	for _, c := range p.Scripts {
		if code := string(p.Src[c.Start:c.End]); strings.HasPrefix(code, "import") || strings.HasPrefix(code, "export") {
			cuts = append(cuts, cut{c, ""})
		}
	}
	slices.SortStableFunc(cuts, func(a, b cut) int { return a.Start - b.Start })
	depth := indents(p)
	var out strings.Builder
	at := p.Body.Start
	write := func(from, to int) { // with the indentation of components taken off
		for from < to {
			end := bytes.IndexByte(p.Src[from:to], '\n') + from + 1
			if end <= from {
				end = to
			}
			line := p.Src[from:end]
			if from == 0 || p.Src[from-1] == '\n' {
				off, by := 0, depth(from)
				for off < len(line) && off < by && (line[off] == ' ' || line[off] == '\t') {
					off++
				}
				line = line[off:]
			}
			out.Write(line)
			from = end
		}
	}
	for _, c := range cuts {
		if c.Start < at || c.End > p.Body.End {
			continue
		}
		write(at, c.Start)
		out.WriteString(c.text)
		at = c.End
	}
	write(at, p.Body.End)
	return out.String()
}

// indents tells how far the text at a place is indented for being inside of components.
func indents(p *markup.Page) func(at int) int {
	type region struct{ from, to, by int }
	var regions []region
	end := 0
	for _, t := range p.Tags {
		if t.Close || t.Self || t.Partner < 0 || t.Span.Start < end || p.Format != markup.MDX {
			continue // within one that is looked at already
		}
		from, to := t.Span.End, p.Tags[t.Partner].Span.Start
		if to <= from {
			continue
		}
		by := -1
		for line := range strings.Lines(string(p.Src[from:to])) {
			trimmed := strings.TrimLeft(line, " \t")
			if strings.TrimSpace(line) == "" || len(line) == len(trimmed) && by < 0 && !strings.HasSuffix(line, "\n") {
				continue
			}
			// The deepest text that is no list, code or component of a component says how far all of it is indented.
			if n := len(line) - len(trimmed); !strings.HasPrefix(trimmed, "<") && (by < 0 || n < by) {
				by = n
			}
		}
		if by > 0 {
			regions = append(regions, region{from, to, by})
		}
		end = to
	}
	return func(at int) int {
		i, found := slices.BinarySearchFunc(regions, at, func(r region, at int) int {
			switch {
			case at < r.from:
				return 1
			case at >= r.to:
				return -1
			}
			return 0
		})
		if !found {
			return 0
		}
		return regions[i].by
	}
}
