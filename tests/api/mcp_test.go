package api

import (
	"bufio"
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
	"docent/tests/harness"
)

func overHTTP(url, key string) mcp.Transport {
	return &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: harness.Bearer(key)}, MaxRetries: 50}
}

var mcpPages = map[string]string{
	"index.md":          "# Harbour\n\nHarbour keeps boats.\n",
	"guides/index.md":   "---\ntitle: Guides\n---\n",
	"guides/mooring.md": "---\ntitle: Mooring\n---\n# Mooring\n\nTo moor a boat, run `harbour moor BOAT`. It takes a minute.\n",
	"internal/plan.md":  "---\nhidden: true\n---\n# Plan\n\nThe codename is Bluefin.\n",
	"drafts/next.md":    "---\ndraft: true\n---\n# Next\n\nThe next codename is Marlin.\n",
}

// TestEditorsReadOverMCP has the official client read and ask as an editor does: what it gets is what the API gives.
func TestEditorsReadOverMCP(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	server := harness.NewServer(t, data)
	p := harness.NewProject(t, data, "harbour", harness.WriteFiles(t, mcpPages), "--site-url",
		"https://harbour.example.com")
	other := harness.NewProject(
		t,
		data,
		"other",
		harness.WriteFiles(t, map[string]string{"index.md": "# Other\n\nSecret of others.\n"}),
	)
	address := server.URL + "/mcp/" + p.Domain

	for name, key := range map[string]string{"no key": "", "another project's": other.Assistant, "an admin key": p.Admin,
		"a wrong one": api.NewSecret(api.AssistantKey)} {
		if _, err := harness.Connect(t, overHTTP(address, key)); err == nil {
			t.Errorf("%s: a session began", name)
		}
	}
	editor, err := harness.Connect(t, overHTTP(address, p.Assistant))
	if err != nil {
		t.Fatal(err)
	}
	readsAndAsks(t, editor, "docs://"+p.Domain+"/")

	// A session, of a client of an older revision, stays with the server that it began at, even if another one has its
	// name, and with its key.
	post := func(address, key, session, message string) (int, string, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(message))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Mcp-Session-Id": session, "Content-Type": "application/json",
			"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2025-06-18",
			"Authorization": "Bearer " + key} {
			if value != "" {
				req.Header.Set(name, value)
			}
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
		return res.StatusCode, string(body), res.Header.Get("Mcp-Session-Id")
	}
	overTheWire := func(address, key, session string) (int, string) {
		status, body, _ := post(address, key, session, `{"jsonrpc":"2.0","id":7,"method":"resources/list"}`)
		return status, body
	}
	_, _, session := post(address, p.Assistant, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"old","version":"1"}}}`)
	post(address, p.Assistant, session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if status, body := overTheWire(address, p.Assistant, session); status != http.StatusOK ||
		!strings.Contains(body, "mooring") {
		t.Errorf("the session at its own server: %d %s", status, body)
	}
	// What is wrong in a request has the codes of JSON-RPC.
	for message, code := range map[string]string{
		`{"jsonrpc":"2.0","id":7,"method":"resources/list","params":{"cursor":"wrong"}}`:            "-32602",
		`{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"cursor":"wrong"}}`:                "-32602",
		`{"jsonrpc":"2.0","id":7,"method":"no/such"}`:                                               "-32601",
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"no_such","arguments":{}}}`: "-32602",
		`nonsense`: "-32700",
	} {
		if _, body, _ := post(address, p.Assistant, session, message); !strings.Contains(body, `"code":`+code) {
			t.Errorf("%s: %s", message, body)
		}
	}
	for name, at := range map[string][3]string{
		"another project, by its own key": {server.URL + "/mcp/" + other.Domain, other.Assistant, session},
		"the project's agent":             {server.URL + "/mcp/agent/" + p.ID, p.Admin, session},
		"the project, by another's key":   {address, other.Assistant, session},
		"the project, with a name made up": {address, p.Assistant,
			"NSUZ6JQGH2QPEBKZ2PDO5TZ6GE-00000000000000000000000000000000"},
	} {
		if status, body := overTheWire(at[0], at[1], at[2]); status < 400 || strings.Contains(body, "mooring") {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}

	// A restart ends no session: the editor goes on as if nothing had happened.
	server.Stop()
	server.Start()
	if text, _ := harness.CallTool(t, editor, "search", map[string]any{"query": "moor a boat"}); !strings.Contains(text, "harbour moor") {
		t.Errorf("search after a restart: %s", text)
	}
	if status, body := overTheWire(address, p.Assistant, session); status != http.StatusOK || !strings.Contains(body, "mooring") {
		t.Errorf("the session after a restart: %d %s", status, body)
	}

	// A page without text gives its title and the pages below it, as a resource too.
	index, _ := harness.CallTool(t, editor, "read_page", map[string]any{"path": "guides/index"})
	if !strings.HasPrefix(index, "# Guides\n") || !strings.Contains(index, "- [Mooring](guides/mooring.md)") {
		t.Errorf("a page without text is %q", index)
	}
	whole, err := editor.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "docs://" + p.Domain + "/guides/index.md"})
	if err != nil || len(whole.Contents) != 1 || whole.Contents[0].Text != index {
		t.Errorf("its resource is %+v, %v", whole, err)
	}

	// Without a key, once the project lets everybody.
	harness.Docent(t, "project", "set", p.ID, "--data", data, "--public")
	anybody, err := harness.Connect(t, overHTTP(address, ""))
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := harness.CallTool(
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
	if _, err := harness.Connect(t, overHTTP(server.URL+"/mcp/"+other.Domain, "")); err == nil {
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
	if text, _ := harness.CallTool(
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
	if text, _ := harness.CallTool(
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
	page, _ := harness.CallTool(t, editor, "read_page", map[string]any{"path": "guides/mooring"})
	if !strings.Contains(page, "It takes a minute.") {
		t.Errorf("read_page: %s", page)
	}
	if text, result := harness.CallTool(t, editor, "read_page", map[string]any{"path": "nowhere"}); !result.IsError {
		t.Errorf("a page that does not exist: %s", text)
	}
	answer, result := harness.CallTool(t, editor, "ask", map[string]any{"question": "How do I moor a boat?"})
	said, _ := result.StructuredContent.(map[string]any)
	if !strings.Contains(answer, "harbour moor BOAT") || said["threadId"] == "" || said["messageId"] == "" {
		t.Errorf("ask: %s, %v", answer, said)
	}
	rated, _ := harness.CallTool(
		t,
		editor,
		"feedback",
		map[string]any{"threadId": said["threadId"], "messageId": said["messageId"],
			"helpful": true, "comment": "thanks"},
	)
	if !strings.Contains(rated, "stored") {
		t.Errorf("feedback: %s", rated)
	}
	if text, result := harness.CallTool(t, editor, "feedback", map[string]any{"threadId": "thr_x", "messageId": "msg_x",
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
	if got := strings.Join(uris, " "); got != "guides/index.md guides/mooring.md index.md" {
		t.Errorf("resources are %q", got)
	}
	read, err := editor.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: base + "guides/mooring.md"})
	if err != nil || len(read.Contents) != 1 || read.Contents[0].Text != page {
		t.Errorf("the resource is not the page: %+v, %v", read, err)
	}
	// What is left out is nowhere: not found, not listed, not read, not in an answer.
	for _, path := range []string{"drafts/next", "drafts/next.md"} {
		if text, result := harness.CallTool(t, editor, "read_page", map[string]any{"path": path}); !result.IsError {
			t.Errorf("%s is read: %s", path, text)
		}
	}
	for _, tool := range []map[string]any{{"query": "Marlin codename"}, {"question": "What is the next codename, Marlin?"}} {
		name := "search"
		if tool["query"] == nil {
			name = "ask"
		}
		if text, _ := harness.CallTool(t, editor, name, tool); strings.Contains(text, "next codename is Marlin") {
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
	server := harness.NewServer(t, data)
	p := harness.NewProject(t, data, "harbour", harness.WriteFiles(t, mcpPages))
	address := server.URL + "/mcp/agent/" + p.ID
	if _, err := harness.Connect(t, overHTTP(address, p.Assistant)); err == nil {
		t.Error("an assistant key gives work")
	}
	editor, err := harness.Connect(t, overHTTP(address, p.Admin))
	if err != nil {
		t.Fatal(err)
	}
	made, result := harness.CallTool(
		t,
		editor,
		"create_job",
		map[string]any{"prompt": `Rename "boat" to "ship".`, "idempotencyKey": "k1"},
	)
	said, _ := result.StructuredContent.(map[string]any)
	id, _ := said["id"].(string)
	if again, r := harness.CallTool(t, editor, "create_job", map[string]any{"prompt": `Rename "boat" to "ship".`,
		"idempotencyKey": "k1"}); !strings.Contains(again, id) || r.IsError {
		t.Errorf("the same request again: %s, first %s", again, made)
	}
	status := ""
	for !strings.Contains(status, "completed") {
		if status, result = harness.CallTool(
			t,
			editor,
			"job_status",
			map[string]any{"job": id, "wait": 20},
		); result.IsError ||
			strings.Contains(status, "failed") {
			t.Fatalf("job_status: %s", status)
		}
	}
	if !strings.Contains(status, server.URL+"/pulls/") {
		t.Errorf("no pull request in %s", status)
	}
	if diff, _ := harness.CallTool(
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
	if list, _ := harness.CallTool(t, editor, "list_jobs", nil); !strings.Contains(list, id) {
		t.Errorf("list_jobs: %s", list)
	}
	if text, result := harness.CallTool(
		t,
		editor,
		"follow_up",
		map[string]any{"job": id, "prompt": `Rename "ship" to "vessel".`},
	); result.IsError {
		t.Errorf("follow_up: %s", text)
	}
	if text, result := harness.CallTool(t, editor, "create_job", map[string]any{"prompt": ""}); !result.IsError ||
		!strings.Contains(text, "prompt") {
		t.Errorf("an empty prompt: %s", text)
	}
}

func TestAFolderIsServedOverMCPWithoutAServer(t *testing.T) {
	t.Parallel()
	harness.SkipShort(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := exec.CommandContext(ctx, harness.Self(t), "mcp", "--source", harness.WriteFiles(t, mcpPages))
	cmd.Env = harness.Environment(t)
	editor, err := harness.Connect(t, &mcp.CommandTransport{Command: cmd})
	if err != nil {
		t.Fatal(err)
	}
	readsAndAsks(t, editor, "docs://docs/")
}

// TestAStaticSiteGetsItsPagesAsMarkdown writes what a server gives at /llms/DOMAIN.
func TestAStaticSiteGetsItsPagesAsMarkdown(t *testing.T) {
	t.Parallel()
	harness.SkipShort(t)
	to := filepath.Join(t.TempDir(), "build")
	harness.Docent(t, "llms", "--source", harness.WriteFiles(t, mcpPages), "--site-url",
		"https://harbour.example.com/docs/", "--to", to)
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
	if got := strings.Join(names, " "); err != nil || got != "guides/mooring.md guides.md index.html.md llms-full.txt llms.txt" {
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

	// The generator's configuration says the rest: address, title, what the site is about, groups and order.
	site := map[string]string{"mkdocs.yml": "site_name: Harbour\nsite_description: All that a boat needs.\nsite_url: https://boats.test/docs/\nnav:\n  - index.md\n",
		"docs/index.md": "# Welcome\n\nBoats.\n"}
	want := "# Harbour\n\n> All that a boat needs.\n\n## Pages\n\n- [Welcome](https://boats.test/docs/index.html.md): All that a boat needs.\n"
	for _, group := range []string{"Ropes", "Anchors"} {
		site["mkdocs.yml"] += "  - " + group + ":\n"
		want += "\n## " + group + "\n\n"
		for _, name := range []string{"z", "m", "b", "a"} {
			file := strings.ToLower(group) + "/" + name + ".md"
			site["mkdocs.yml"] += "    - " + file + "\n"
			site["docs/"+file] = "# " + group + " " + name + "\n\nText.\n"
			want += "- [" + group + " " + name + "](https://boats.test/docs/" + strings.ToLower(group) + "/" + name + "/index.html.md)\n"
		}
	}
	to = filepath.Join(t.TempDir(), "build")
	harness.Docent(t, "llms", "--source", harness.WriteFiles(t, site), "--to", to)
	if got, err := os.ReadFile(filepath.Join(to, "llms.txt")); err != nil || string(got) != want {
		t.Errorf("%v: llms.txt of a site with a navigation is\n%s\nwant\n%s", err, got, want)
	}
}

// TestTheOfficialMCPClientWorks drives the client that the protocol's keepers publish for JavaScript, with a model whose
// answer is cut off, and one that is cancelled in its midst.
func TestTheOfficialMCPClientWorks(t *testing.T) {
	t.Parallel()
	const clients = "../testdata/clients"
	need.Installed(t, "the official MCP client", "scripts/install-clients", clients+"/node_modules/@modelcontextprotocol/sdk")
	data := t.TempDir()
	config := harness.SettingsFile(t, "default_model = \"slow\"\n[models.slow]\nprovider = \"scripted\"\nrate = 40\ntext = \"Run harbour moor BOAT and wait. \"\nparts = 40\n"+harness.EndlessModel)
	server := harness.NewServer(t, data, "--config", config)
	p := harness.NewProject(t, data, "harbour", harness.WriteFiles(t, mcpPages))
	endless := harness.NewProject(t, data, "endless", harness.WriteFiles(t, mcpPages), "--model", "endless")
	settings, err := json.Marshal(map[string]any{"url": server.URL + "/mcp/" + p.Domain, "key": p.Assistant,
		"endless": map[string]string{"url": server.URL + "/mcp/" + endless.Domain, "key": endless.Assistant}})
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

// TestOfficialMCPClientsGoOnAfterARestart has both generations of the official client read before and after a restart, by sessions
// and by the revision that has none.
func TestOfficialMCPClientsGoOnAfterARestart(t *testing.T) {
	t.Parallel()
	const clients = "../testdata/clients"
	need.Installed(t, "the official MCP clients", "scripts/install-clients", clients+"/node_modules/@modelcontextprotocol/client", clients+"/node_modules/@modelcontextprotocol/sdk")
	data := t.TempDir()
	server := harness.NewServer(t, data)
	p := harness.NewProject(t, data, "harbour", harness.WriteFiles(t, mcpPages))
	settings, err := json.Marshal(map[string]any{"url": server.URL + "/mcp/" + p.Domain, "key": p.Assistant})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "mcprevisions.mjs")
	cmd.Dir, cmd.Env = clients, append(os.Environ(), "DOCENT_MCP="+string(settings))
	var wrong bytes.Buffer
	cmd.Stderr = &wrong
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewReader(out)
	if line, err := said.ReadString('\n'); line != "ready\n" {
		t.Fatalf("%v: %s\n%s", err, line, wrong.String())
	}
	server.Stop()
	server.Start()
	if _, err := io.WriteString(in, "\n"); err != nil {
		t.Fatal(err)
	}
	problems, err := io.ReadAll(said)
	if end := cmd.Wait(); err != nil || end != nil {
		t.Fatalf("%v, %v\n%s", err, end, wrong.String())
	}
	if len(problems) > 0 {
		t.Errorf("clients are not served as they should be:\n%s", problems)
	}
}
