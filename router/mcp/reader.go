package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"docent/api"
	"docent/api/client"
	"docent/search"
)

const (
	readerInstructions = "This server knows one documentation set. Use search to find sections, read_page to read a page whole, and ask " +
		"for an answer with its sources. Say feedback when an answer was right or wrong."

	pageSize    = 200      // resources in one list
	maxChildren = 16 << 10 // bytes of a list of pages
	scheme      = "docs"
)

type (
	searchInput struct {
		Query    string `json:"query" jsonschema:"what to look for: words, a question, a name from the code"`
		Limit    int    `json:"limit,omitempty" jsonschema:"maximum number of sections, 1 to 20; default: 5"`
		Version  string `json:"version,omitempty" jsonschema:"version of the documentation, such as 2.1; default: the current one"`
		Language string `json:"language,omitempty" jsonschema:"language of the pages, such as en or pt-BR"`
		// labels of the project's sources
		Sources []string `json:"sources,omitempty" jsonschema:"only these sources of the documentation, by the labels that sections have, such as docs or blog; default: all"`
	}
	section struct {
		Title   string  `json:"title"`
		Heading string  `json:"heading,omitempty"`
		Path    string  `json:"path" jsonschema:"for read_page"`
		URL     string  `json:"url,omitempty"`
		Content string  `json:"content"`
		Score   float64 `json:"score"`
		Version string  `json:"version,omitempty"`
		Source  string  `json:"source,omitempty" jsonschema:"label of the source, if there are several"`
	}
	searchOutput struct {
		Sections []section `json:"sections"`
	}

	pageInput struct {
		Path string `json:"path" jsonschema:"path or address of the page, as search gives it"`
	}
	pageOutput struct {
		Path    string `json:"path"`
		Content string `json:"content" jsonschema:"the page in Markdown"`
	}

	askInput struct {
		Question string `json:"question"`
		Thread   string `json:"thread,omitempty" jsonschema:"threadId of an earlier answer, to continue its conversation"`
		Key      string `json:"threadKey,omitempty" jsonschema:"threadKey of that answer, if it had one"`
		Version  string `json:"version,omitempty" jsonschema:"version of the documentation; default: the current one"`
		Language string `json:"language,omitempty" jsonschema:"language of the pages"`
	}

	feedbackInput struct {
		Thread  string `json:"threadId"`
		Message string `json:"messageId"`
		Key     string `json:"threadKey,omitempty" jsonschema:"if the answer had one"`
		Helpful bool   `json:"helpful"`
		Comment string `json:"comment,omitempty" jsonschema:"what was missing or wrong"`
	}
	done struct {
		Stored bool `json:"stored"`
	}
)

// reading says that a tool changes nothing, here or elsewhere.
func reading(title string) *mcp.ToolAnnotations {
	closed := false
	return &mcp.ToolAnnotations{Title: title, ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &closed}
}

func (t tools) addReader(server *mcp.Server) {
	mcp.AddTool(server, &mcp.Tool{Name: "search", Annotations: reading("Search the documentation"),
		Description: "Find the sections of the documentation that fit a query best, with their text."}, t.search)
	mcp.AddTool(server, &mcp.Tool{Name: "read_page", Annotations: reading("Read a page"),
		Description: "Read one page of the documentation whole, as Markdown."}, t.readPage)
	mcp.AddTool(server, &mcp.Tool{Name: "ask", Annotations: &mcp.ToolAnnotations{Title: "Ask a question"},
		Description: "Get an answer to a question from the documentation, with the pages that it is from. It says so if the " +
			"documentation has no answer."}, t.ask)
	mcp.AddTool(server, &mcp.Tool{Name: "feedback", Annotations: &mcp.ToolAnnotations{Title: "Rate an answer",
		IdempotentHint: true},
		Description: "Say whether an answer of ask helped; the people who write the documentation read it."}, t.feedback)
	server.AddResourceTemplate(&mcp.ResourceTemplate{Name: "page", Title: "A page of the documentation",
		URITemplate: scheme + "://" + t.domain + "/{+path}", MIMEType: "text/markdown"}, t.readResource)
	server.AddReceivingMiddleware(t.listPages)
}

func (t tools) search(ctx context.Context, req *mcp.CallToolRequest, in searchInput) (*mcp.CallToolResult, searchOutput,
	error) {
	limit := 5
	if in.Limit != 0 {
		limit = min(max(in.Limit, 1), 20)
	}
	q := client.Search{Query: in.Query, PageSize: limit}
	if in.Version != "" || in.Language != "" || len(in.Sources) > 0 {
		q.Filter = &client.Filter{Version: in.Version, Language: in.Language, Sources: in.Sources}
	}
	hits, err := t.client(req.Extra).Search(ctx, t.domain, q)
	if err != nil {
		return nil, searchOutput{}, failed(err)
	}
	out := searchOutput{Sections: make([]section, 0, len(hits))}
	var text strings.Builder
	for _, h := range hits {
		out.Sections = append(out.Sections, section{Title: h.Metadata.Title, Heading: h.Metadata.Heading, Path: h.Path,
			URL: h.Metadata.URL, Content: h.Content, Score: h.Metadata.Score, Version: h.Metadata.Version, Source: h.Metadata.Source})
		fmt.Fprintf(&text, "## %s\n%s\n\n%s\n\n", heading(h.Metadata.Title, h.Metadata.Heading), orPath(h.Metadata.URL, h.Path),
			h.Content)
	}
	if len(hits) == 0 {
		text.WriteString("The documentation has no section that fits.")
	}
	return say(text.String()), out, nil
}

func heading(title, heading string) string {
	if heading == "" || heading == title {
		return title
	}
	return title + ": " + heading
}

func orPath(address, name string) string {
	if address != "" {
		return address
	}
	return name
}

func (t tools) readPage(ctx context.Context, req *mcp.CallToolRequest, in pageInput) (*mcp.CallToolResult, pageOutput,
	error) {
	p, err := t.page(ctx, req.Extra, in.Path)
	if err != nil {
		return nil, pageOutput{}, failed(err)
	}
	return say(p.Content), p, nil
}

func (t tools) page(ctx context.Context, extra *mcp.RequestExtra, name string) (pageOutput, error) {
	p, err := t.client(extra).ReadPage(ctx, t.domain, client.ReadPage{Path: name})
	if err != nil {
		return pageOutput{}, err
	}
	text := strings.TrimSpace(p.Content)
	if p.Title != "" && !strings.HasPrefix(text, "# ") {
		text = strings.TrimSpace("# " + p.Title + "\n\n" + text)
	}
	if strings.TrimSpace(p.Content) == "" { // an index of others, which the site makes
		text += t.children(ctx, p.Path)
	}
	return pageOutput{Path: p.Path, Content: text}, nil
}

// children lists the pages in the folder of a page, for one that says nothing itself.
func (t tools) children(ctx context.Context, of string) string {
	pages, err := t.servers.Pages.Published(ctx, t.project)
	if err != nil {
		return "" // the title is there
	}
	var b strings.Builder
	for _, p := range pages {
		if p.Path == of || path.Dir(p.Path) != path.Dir(of) && path.Dir(path.Dir(p.Path)) != path.Dir(of) {
			continue
		}
		if b.Len() > maxChildren {
			break
		}
		fmt.Fprintf(&b, "\n- [%s](%s)", p.Title, p.Path)
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n" + b.String() + "\n"
}

func (t tools) ask(ctx context.Context, req *mcp.CallToolRequest, in askInput) (*mcp.CallToolResult, client.Answer,
	error) {
	a, err := t.client(req.Extra).Ask(ctx, client.Question{Domain: t.domain, Text: in.Question,
		Thread: in.Thread, Key: in.Key, Version: in.Version, Language: in.Language}, &written{ctx: ctx, req: req})
	if err != nil {
		return nil, a, failed(err)
	}
	var text strings.Builder
	text.WriteString(a.Text)
	for i, s := range a.Sources {
		if i == 0 {
			text.WriteString("\n\nSources:\n")
		}
		fmt.Fprintf(&text, "%d. [%s](%s)\n", i+1, s.Title, s.URL)
	}
	for i, c := range a.Cards {
		if i == 0 {
			text.WriteString("\n\nSee also:\n")
		}
		fmt.Fprintf(&text, "- [%s](%s): %s\n", c.Title, c.URL, c.Excerpt)
	}
	return say(text.String()), a, nil
}

// written tells the client of an answer as it is written, if it wants to know.
type written struct {
	ctx   context.Context
	req   *mcp.CallToolRequest
	bytes float64
}

func (w *written) Write(b []byte) (int, error) {
	token := w.req.Params.GetProgressToken()
	if token == nil || len(b) == 0 {
		return len(b), nil
	}
	w.bytes += float64(len(b))
	err := w.req.Session.NotifyProgress(w.ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: w.bytes,
		Message: string(b)})
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

func (t tools) feedback(ctx context.Context, req *mcp.CallToolRequest, in feedbackInput) (*mcp.CallToolResult, done,
	error) {
	rating := api.RatedDown
	if in.Helpful {
		rating = api.RatedUp
	}
	err := t.client(req.Extra).RateAnswer(ctx, t.domain, client.RateAnswer{ThreadID: in.Thread, MessageID: in.Message,
		ThreadKey: in.Key, Rating: rating, Comment: in.Comment})
	if err != nil {
		return nil, done{}, failed(err)
	}
	return say("Thank you: it is stored."), done{true}, nil
}

// readResource is a page as a resource: the same text as read_page gives.
func (t tools) readResource(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	name, ok := strings.CutPrefix(req.Params.URI, scheme+"://"+t.domain+"/")
	if !ok {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	p, err := t.page(ctx, req.Extra, name)
	if errors.Is(err, client.ErrNotFound) {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	if err != nil {
		return nil, failed(err)
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{
		{URI: req.Params.URI, MIMEType: "text/markdown", Text: p.Content}}}, nil
}

// listPages answers resources/list from the index as it is now: pages come and go, and each session would else hold
// them all.
func (t tools) listPages(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method != "resources/list" {
			return next(ctx, method, req)
		}
		pages, err := t.servers.Pages.Published(ctx, t.project)
		if err != nil && !errors.Is(err, search.ErrNotIndexed) {
			return nil, err
		}
		from := 0
		if p, ok := req.GetParams().(*mcp.ListResourcesParams); ok && p != nil && p.Cursor != "" {
			if from, err = strconv.Atoi(p.Cursor); err != nil || from < 0 {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "cursor: must be the nextCursor of an earlier list"}
			}
		}
		pages = pages[min(from, len(pages)):]
		out := &mcp.ListResourcesResult{Cacheable: ownCache, Resources: []*mcp.Resource{}}
		for _, p := range pages[:min(pageSize, len(pages))] {
			out.Resources = append(out.Resources, &mcp.Resource{Name: p.Path, Title: p.Title, Description: p.Description,
				MIMEType: "text/markdown", URI: (&url.URL{Scheme: scheme, Host: t.domain, Path: "/" + p.Path}).String()})
		}
		if len(pages) > pageSize {
			out.NextCursor = strconv.Itoa(from + pageSize)
		}
		return out, nil
	}
}

func say(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

var _ io.Writer = (*written)(nil)
