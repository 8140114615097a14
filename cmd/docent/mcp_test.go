package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"docent/api"
	"docent/internal/testing/need"
)

// bearer sends a key with each request.
type bearer string

func (b bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	if b != "" {
		req.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(req)
}

// connect is an editor's connection to an MCP server.
func connect(t *testing.T, transport mcp.Transport) (*mcp.ClientSession, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "editor", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), transport, nil)
	if err == nil {
		t.Cleanup(func() { session.Close() })
	}
	return session, err
}

func overHTTP(url, key string) mcp.Transport {
	return &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer(key)}}
}

// callTool calls a tool and gives its text.
func callTool(
	t *testing.T,
	s *mcp.ClientSession,
	name string,
	arguments map[string]any,
) (text string, result *mcp.CallToolResult) {
	t.Helper()
	result, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for _, c := range result.Content {
		if c, ok := c.(*mcp.TextContent); ok {
			text += c.Text
		}
	}
	return text, result
}

var mcpPages = map[string]string{
	"index.md":          "# Harbour\n\nHarbour keeps boats.\n",
	"guides/mooring.md": "---\ntitle: Mooring\n---\n# Mooring\n\nTo moor a boat, run `harbour moor BOAT`. It takes a minute.\n",
	"internal/plan.md":  "---\nhidden: true\n---\n# Plan\n\nThe codename is Bluefin.\n",
	"drafts/next.md":    "---\ndraft: true\n---\n# Next\n\nThe next codename is Marlin.\n",
}

// TestEditorsReadOverMCP has the official client read and ask as an editor does: what it gets is what the API gives.
func TestEditorsReadOverMCP(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	server := newTestServer(t, data)
	p := newTestProject(t, data, "harbour", writeFiles(t, mcpPages), "--site-url", "https://harbour.example.com")
	other := newTestProject(
		t,
		data,
		"other",
		writeFiles(t, map[string]string{"index.md": "# Other\n\nSecret of others.\n"}),
	)
	address := server.url + "/mcp/" + p.domain

	for name, key := range map[string]string{"no key": "", "another project's": other.assistant, "an admin key": p.admin,
		"a wrong one": api.NewSecret(api.AssistantKey)} {
		if _, err := connect(t, overHTTP(address, key)); err == nil {
			t.Errorf("%s: a session began", name)
		}
	}
	editor, err := connect(t, overHTTP(address, p.assistant))
	if err != nil {
		t.Fatal(err)
	}
	readsAndAsks(t, editor, "docs://"+p.domain+"/")

	// A session stays with the server that it began at, even if another one has its name, and with its key.
	overTheWire := func(address, key, session string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address,
			strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"resources/list"}`))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Mcp-Session-Id": session, "Content-Type": "application/json",
			"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2025-06-18",
			"Authorization": "Bearer " + key} {
			req.Header.Set(name, value)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}
	if status, body := overTheWire(address, p.assistant, editor.ID()); status != http.StatusOK ||
		!strings.Contains(body, "mooring") {
		t.Errorf("the session at its own server: %d %s", status, body)
	}
	for name, at := range map[string][3]string{
		"another project, by its own key": {server.url + "/mcp/" + other.domain, other.assistant, editor.ID()},
		"the project's agent":             {server.url + "/mcp/agent/" + p.id, p.admin, editor.ID()},
		"the project, by another's key":   {address, other.assistant, editor.ID()},
		"the project, with a name made up": {address, p.assistant,
			"NSUZ6JQGH2QPEBKZ2PDO5TZ6GE-00000000000000000000000000000000"},
	} {
		if status, body := overTheWire(at[0], at[1], at[2]); status < 400 || strings.Contains(body, "mooring") {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}

	// Without a key, once the project lets everybody.
	docent(t, "project", "set", p.id, "--data", data, "--public")
	anybody, err := connect(t, overHTTP(address, ""))
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := callTool(
		t,
		anybody,
		"search",
		map[string]any{"query": "moor a boat"},
	); !strings.Contains(
		text,
		"harbour moor",
	) {
		t.Errorf("search without a key: %s", text)
	}
	if _, err := connect(t, overHTTP(server.url+"/mcp/"+other.domain, "")); err == nil {
		t.Error("a session without a key began where the project does not let everybody")
	}
}

// readsAndAsks is what an editor does with a documentation set.
func readsAndAsks(t *testing.T, editor *mcp.ClientSession, base string) {
	t.Helper()
	tools, err := editor.ListTools(t.Context(), nil)
	if err != nil || len(tools.Tools) != 4 {
		t.Fatalf("%d tools, %v", len(tools.Tools), err)
	}
	if text, _ := callTool(
		t,
		editor,
		"search",
		map[string]any{"query": "moor a boat"},
	); !strings.Contains(
		text,
		"harbour moor BOAT",
	) {
		t.Errorf("search: %s", text)
	}
	if text, _ := callTool(
		t,
		editor,
		"search",
		map[string]any{"query": "Bluefin codename"},
	); strings.Contains(
		text,
		"Bluefin",
	) {
		t.Errorf("a hidden page is found: %s", text)
	}
	page, _ := callTool(t, editor, "read_page", map[string]any{"path": "guides/mooring"})
	if !strings.Contains(page, "It takes a minute.") {
		t.Errorf("read_page: %s", page)
	}
	if text, result := callTool(t, editor, "read_page", map[string]any{"path": "nowhere"}); !result.IsError {
		t.Errorf("a page that does not exist: %s", text)
	}
	answer, result := callTool(t, editor, "ask", map[string]any{"question": "How do I moor a boat?"})
	said, _ := result.StructuredContent.(map[string]any)
	if !strings.Contains(answer, "harbour moor BOAT") || said["threadId"] == "" || said["messageId"] == "" {
		t.Errorf("ask: %s, %v", answer, said)
	}
	rated, _ := callTool(
		t,
		editor,
		"feedback",
		map[string]any{"threadId": said["threadId"], "messageId": said["messageId"],
			"helpful": true, "comment": "thanks"},
	)
	if !strings.Contains(rated, "stored") {
		t.Errorf("feedback: %s", rated)
	}
	if text, result := callTool(t, editor, "feedback", map[string]any{"threadId": "thr_x", "messageId": "msg_x",
		"helpful": true}); !result.IsError {
		t.Errorf("feedback on nothing: %s", text)
	}

	resources, err := editor.ListResources(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var uris []string
	for _, r := range resources.Resources {
		uris = append(uris, strings.TrimPrefix(r.URI, base))
	}
	if got := strings.Join(uris, " "); got != "guides/mooring.md index.md" {
		t.Errorf("resources are %q", got)
	}
	read, err := editor.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: base + "guides/mooring.md"})
	if err != nil || len(read.Contents) != 1 || read.Contents[0].Text != page {
		t.Errorf("the resource is not the page: %+v, %v", read, err)
	}
	// What is left out is nowhere: not found, not listed, not read, not in an answer.
	for _, path := range []string{"drafts/next", "drafts/next.md"} {
		if text, result := callTool(t, editor, "read_page", map[string]any{"path": path}); !result.IsError {
			t.Errorf("%s is read: %s", path, text)
		}
	}
	for _, tool := range []map[string]any{{"query": "Marlin codename"}, {"question": "What is the next codename, Marlin?"}} {
		name := "search"
		if tool["query"] == nil {
			name = "ask"
		}
		if text, _ := callTool(t, editor, name, tool); strings.Contains(text, "next codename is Marlin") {
			t.Errorf("%s gives what is left out: %s", name, text)
		}
	}
	for _, uri := range []string{base + "nowhere.md", base + "drafts/next.md", "docs://elsewhere/guides/mooring.md",
		"file:///etc/passwd"} {
		if _, err := editor.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%s is read", uri)
		}
	}
}

func TestEditorsGiveWorkOverMCP(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	server := newTestServer(t, data)
	p := newTestProject(t, data, "harbour", writeFiles(t, mcpPages))
	address := server.url + "/mcp/agent/" + p.id
	if _, err := connect(t, overHTTP(address, p.assistant)); err == nil {
		t.Error("an assistant key gives work")
	}
	editor, err := connect(t, overHTTP(address, p.admin))
	if err != nil {
		t.Fatal(err)
	}
	made, result := callTool(
		t,
		editor,
		"create_job",
		map[string]any{"prompt": `Rename "boat" to "ship".`, "idempotencyKey": "k1"},
	)
	said, _ := result.StructuredContent.(map[string]any)
	id, _ := said["id"].(string)
	if again, r := callTool(t, editor, "create_job", map[string]any{"prompt": `Rename "boat" to "ship".`,
		"idempotencyKey": "k1"}); !strings.Contains(again, id) || r.IsError {
		t.Errorf("the same request again: %s, first %s", again, made)
	}
	status := ""
	for !strings.Contains(status, "completed") {
		if status, result = callTool(
			t,
			editor,
			"job_status",
			map[string]any{"job": id, "wait": 20},
		); result.IsError ||
			strings.Contains(status, "failed") {
			t.Fatalf("job_status: %s", status)
		}
	}
	if !strings.Contains(status, server.url+"/pulls/") {
		t.Errorf("no pull request in %s", status)
	}
	if diff, _ := callTool(
		t,
		editor,
		"job_diff",
		map[string]any{"job": id},
	); !strings.Contains(
		diff,
		"+To moor a ship",
	) {
		t.Errorf("job_diff: %s", diff)
	}
	if list, _ := callTool(t, editor, "list_jobs", nil); !strings.Contains(list, id) {
		t.Errorf("list_jobs: %s", list)
	}
	if text, result := callTool(
		t,
		editor,
		"follow_up",
		map[string]any{"job": id, "prompt": `Rename "ship" to "vessel".`},
	); result.IsError {
		t.Errorf("follow_up: %s", text)
	}
	if text, result := callTool(t, editor, "create_job", map[string]any{"prompt": ""}); !result.IsError ||
		!strings.Contains(text, "prompt") {
		t.Errorf("an empty prompt: %s", text)
	}
}

func TestAFolderIsServedOverMCPWithoutAServer(t *testing.T) {
	t.Parallel()
	leftOutWhenShort(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := exec.CommandContext(ctx, self(t), "mcp", "--source", writeFiles(t, mcpPages))
	cmd.Env = docentEnvironment(t)
	editor, err := connect(t, &mcp.CommandTransport{Command: cmd})
	if err != nil {
		t.Fatal(err)
	}
	readsAndAsks(t, editor, "docs://docs/")
}

// TestAStaticSiteGetsItsPagesAsMarkdown writes what a server gives at /llms/DOMAIN.
func TestAStaticSiteGetsItsPagesAsMarkdown(t *testing.T) {
	t.Parallel()
	leftOutWhenShort(t)
	to := filepath.Join(t.TempDir(), "build")
	docent(t, "llms", "--source", writeFiles(t, mcpPages), "--site-url", "https://harbour.example.com/docs/", "--to", to)
	var names []string
	text := map[string]string{}
	err := filepath.WalkDir(to, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(to, path)
		names = append(names, filepath.ToSlash(name))
		text[filepath.ToSlash(name)] = string(content)
		return err
	})
	if got := strings.Join(names, " "); err != nil || got != "guides/mooring.md index.md llms-full.txt llms.txt" {
		t.Fatalf("the files are %s, %v", got, err)
	}
	if !strings.Contains(text["llms.txt"], "- [Mooring](https://harbour.example.com/docs/guides/mooring.md)\n") {
		t.Errorf("llms.txt is\n%s", text["llms.txt"])
	}
	if want := "# Mooring\n\nSource: https://harbour.example.com/docs/guides/mooring\n\nTo moor"; !strings.HasPrefix(
		text["guides/mooring.md"], want) || !strings.Contains(text["llms-full.txt"], want) {
		t.Errorf("a page is\n%s", text["guides/mooring.md"])
	}
	if strings.Contains(text["llms-full.txt"], "Bluefin") || strings.Contains(text["llms-full.txt"], "Marlin") {
		t.Error("a page that is left out is written")
	}
}

// TestTheOfficialMCPClientWorks drives the client that the protocol's keepers publish for JavaScript, with a model whose
// answer is cut off, and one that is cancelled in its midst.
func TestTheOfficialMCPClientWorks(t *testing.T) {
	t.Parallel()
	const clients = "testdata/clients"
	need.Installed(t, "the official MCP client", "scripts/install-clients", clients+"/node_modules/@modelcontextprotocol/sdk")
	data := t.TempDir()
	config := settingsFile(t, "default_model = \"slow\"\n[models.slow]\nprovider = \"scripted\"\nrate = 40\ntext = \"Run harbour moor BOAT and wait. \"\nparts = 40\n"+endlessModel)
	server := newTestServer(t, data, "--config", config)
	p := newTestProject(t, data, "harbour", writeFiles(t, mcpPages))
	endless := newTestProject(t, data, "endless", writeFiles(t, mcpPages), "--model", "endless")
	settings, err := json.Marshal(map[string]any{"url": server.url + "/mcp/" + p.domain, "key": p.assistant,
		"endless": map[string]string{"url": server.url + "/mcp/" + endless.domain, "key": endless.assistant}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "mcp.mjs")
	cmd.Dir = clients
	cmd.Env = append(os.Environ(), "DOCENT_MCP="+string(settings))
	var problems, wrong bytes.Buffer
	cmd.Stdout, cmd.Stderr = &problems, &wrong
	if err := cmd.Run(); err != nil {
		t.Fatalf("mcp.mjs: %v\n%s", err, wrong.String())
	}
	if problems.Len() > 0 {
		t.Errorf("the client is not served as it should be:\n%s", problems.String())
	}
}
