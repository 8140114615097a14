package main

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mayImport is the plan of the house: every room, lowest first, with all the rooms that it may import. A room stands
// below those that import it, so the order is the order of the floors in docs/ARCHITECTURE.md. Across a wall go data
// types and constructors; what acts on the outside comes in through the interfaces of the importing room's ports.go.
//
// To add a room, give it a line here and in docs/ARCHITECTURE.md. To add an arrow, ask first whether the room needs an
// interface instead.
var mayImport = []struct {
	room string
	may  []string
}{
	// What everything stands on.
	{"docent/api", nil},
	{"docent/backoff", nil},
	{"docent/tracing", []string{"docent/backoff"}},
	{"docent/measure", nil},
	{"docent/docs", nil},
	{"docent/disk", nil},
	{"docent/forge/failure", nil},
	{"docent/formats", nil},
	{"docent/formats/pdf", nil},
	{"docent/evaluation", []string{"docent/formats"}},
	{"docent/internal/corpora", []string{"docent/api"}},
	{"docent/internal/freeport", nil},
	{"docent/internal/growth", nil},
	{"docent/internal/traffic", []string{"docent/api"}},
	{"docent/deploy", nil},
	{"docent/stream", nil},
	{"docent/systemd", nil},
	{"docent/model", nil},
	{"docent/model/claims", nil},
	{"docent/model/modeltest", nil},
	{"docent/router/openapi", nil},
	{"docent/router/openapi/openapitest", []string{"docent/router/openapi"}},
	{"docent/router/proof", nil},
	{"docent/router/sockets", nil},
	{"docent/gzipped", nil},
	{"docent/web/assets", []string{"docent/gzipped"}},
	{"docent/widget", []string{"docent/api", "docent/gzipped"}},
	{"docent/web/diff", nil},
	{"docent/web/oidc/oidctest", []string{"docent/internal/freeport"}},
	{"docent/markup", []string{"docent/formats"}},
	{"docent/site/pattern", nil},
	{"docent/site/script", nil},
	{"docent/site/anchor", []string{"docent/api", "docent/markup"}},
	{"docent/site", []string{
		"docent/api", "docent/formats", "docent/markup", "docent/site/anchor", "docent/site/pattern",
		"docent/site/script",
	}},
	{"docent/cluster", []string{"docent/api"}},
	{"docent/cluster/forward", []string{"docent/api", "docent/cluster"}},
	{"docent/datadir", []string{"docent/disk"}},
	{"docent/health", nil},
	{"docent/outbound", nil},
	{"docent/secrets/given", nil},
	{"docent/doctor", []string{"docent/health", "docent/stream"}},
	{"docent/certs/certstest", []string{"docent/internal/freeport"}},
	{"docent/certs", nil},
	{"docent/crawl/article", nil},
	{"docent/crawl", []string{
		"docent/crawl/article", "docent/datadir", "docent/disk", "docent/outbound", "docent/site", "docent/site/pattern",
	}},
	{"docent/secrets", []string{"docent/api", "docent/datadir", "docent/disk"}},
	{"docent/control", []string{"docent/api", "docent/datadir"}},

	// The capabilities. They know nothing of each other.
	{"docent/agent/say", nil},
	{"docent/agent/workspace", []string{"docent/agent/say", "docent/api", "docent/markup"}},
	{"docent/agent/pages",
		[]string{"docent/agent/say", "docent/agent/workspace", "docent/api", "docent/formats", "docent/markup",
			"docent/site"}},
	{"docent/agent/edit",
		[]string{"docent/agent/pages", "docent/agent/say", "docent/agent/workspace", "docent/api", "docent/markup",
			"docent/site", "docent/site/script"}},
	{"docent/agent/rules", []string{"docent/agent/edit", "docent/agent/say", "docent/agent/workspace"}},
	{"docent/agent/check", []string{
		"docent/agent/edit", "docent/agent/pages", "docent/agent/rules", "docent/agent/say", "docent/agent/workspace",
		"docent/api", "docent/formats", "docent/markup",
	}},
	{"docent/agent", []string{
		"docent/agent/check", "docent/agent/edit", "docent/agent/pages", "docent/agent/rules", "docent/agent/say",
		"docent/agent/workspace", "docent/api", "docent/markup", "docent/tracing",
	}},
	{"docent/forge/host", []string{"docent/api", "docent/backoff", "docent/forge/failure", "docent/secrets/given", "docent/tracing"}},
	{"docent/forge/git", []string{"docent/disk", "docent/forge/failure"}},
	{"docent/forge/remote", []string{"docent/disk", "docent/forge/failure", "docent/forge/git", "docent/tracing"}},
	{"docent/forge/shared", []string{"docent/forge/failure"}},
	{"docent/forge", []string{
		"docent/api", "docent/datadir", "docent/disk", "docent/forge/failure", "docent/forge/git", "docent/forge/host",
		"docent/forge/remote", "docent/forge/shared", "docent/site/pattern", "docent/tracing",
	}},
	{"docent/forge/forgetest", []string{"docent/api", "docent/forge"}},
	{"docent/forge/giteatest", []string{"docent/api", "docent/forge/forgetest", "docent/internal/freeport"}},
	{"docent/search/analysis", nil},
	{"docent/model/builtin", []string{"docent/model", "docent/search/analysis"}},
	{"docent/model/remote", []string{"docent/backoff", "docent/measure", "docent/model", "docent/model/claims", "docent/tracing"}},
	{"docent/model/scripted", []string{"docent/backoff", "docent/model"}},
	{"docent/model/rewrite", []string{"docent/model"}},
	{"docent/model/registry", []string{
		"docent/api", "docent/model", "docent/model/builtin", "docent/model/remote", "docent/model/scripted", "docent/tracing",
	}},
	{"docent/persistence/quota", []string{"docent/api"}},
	{"docent/persistence/journal",
		[]string{"docent/api", "docent/backoff", "docent/disk", "docent/persistence/quota", "docent/tracing"}},
	{"docent/persistence/journal/postgres", []string{
		"docent/api", "docent/backoff", "docent/cluster", "docent/persistence/journal", "docent/persistence/quota",
		"docent/tracing",
	}},
	{"docent/persistence/journal/journaltest", []string{"docent/api", "docent/persistence/journal", "docent/persistence/quota"}},
	{"docent/persistence/catalog", []string{"docent/api", "docent/backoff", "docent/disk"}},
	{"docent/persistence/catalog/catalogtest", []string{"docent/api"}},
	{"docent/persistence", []string{"docent/persistence/catalog", "docent/persistence/journal"}},
	{"docent/router/overload", []string{"docent/api"}},
	{"docent/search/eval", nil},
	{"docent/gaps", []string{"docent/search/analysis"}},
	{"docent/search/page", []string{"docent/formats", "docent/formats/pdf", "docent/markup", "docent/search/analysis", "docent/site"}},
	{"docent/search/index",
		[]string{"docent/api", "docent/disk", "docent/markup", "docent/search/analysis", "docent/search/page", "docent/site"}},
	{"docent/search/meaning", []string{"docent/disk"}},
	{"docent/search", []string{
		"docent/api", "docent/markup", "docent/search/analysis", "docent/search/index", "docent/search/meaning", "docent/search/page",
		"docent/site", "docent/tracing",
	}},

	// The actors. A job and a thread know nothing of each other.
	{"docent/actors/persistent",
		[]string{"docent/api", "docent/backoff", "docent/persistence/journal", "docent/tracing"}},
	{"docent/actors/simulation", []string{"docent/actors/persistent", "docent/persistence/journal"}},
	{"docent/actors/job", []string{
		"docent/actors/persistent", "docent/agent", "docent/api", "docent/backoff", "docent/forge",
		"docent/persistence/journal",
		"docent/persistence/quota", "docent/tracing",
	}},
	{"docent/actors/thread", []string{
		"docent/actors/persistent", "docent/api", "docent/backoff", "docent/model", "docent/model/builtin",
		"docent/model/rewrite", "docent/persistence/journal", "docent/persistence/quota", "docent/search", "docent/stream",
		"docent/tracing",
	}},
	{"docent/actors", []string{
		"docent/actors/job", "docent/actors/persistent", "docent/actors/thread", "docent/api", "docent/backoff",
		"docent/cluster", "docent/model", "docent/persistence/journal", "docent/tracing",
	}},

	// What the server does by itself.
	{"docent/ingest", []string{"docent/api", "docent/backoff", "docent/datadir", "docent/forge", "docent/outbound",
		"docent/search", "docent/site"}},
	{"docent/ingest/shared", []string{"docent/api", "docent/datadir", "docent/disk", "docent/ingest", "docent/persistence/catalog"}},
	{"docent/issues", []string{"docent/api", "docent/datadir", "docent/forge/host", "docent/ingest"}},
	{"docent/uploads", []string{"docent/api", "docent/datadir", "docent/disk", "docent/ingest"}},
	{"docent/automation",
		[]string{"docent/actors/job", "docent/api", "docent/backoff", "docent/cluster", "docent/forge", "docent/persistence/journal",
			"docent/secrets/given"}},
	{"docent/backup", []string{"docent/datadir", "docent/disk", "docent/health", "docent/persistence/journal"}},
	{"docent/retention", []string{"docent/actors/thread", "docent/api", "docent/backoff", "docent/persistence/journal"}},

	{"docent/outcomes", []string{"docent/actors/job", "docent/api", "docent/backoff"}},
	{"docent/startjob", []string{
		"docent/actors/job", "docent/api", "docent/persistence/journal", "docent/persistence/quota",
	}},
	{"docent/review", []string{
		"docent/actors/job", "docent/agent", "docent/api", "docent/backoff", "docent/forge/failure", "docent/forge/host",
		"docent/startjob",
	}},
	{"docent/gaps/tracker", []string{
		"docent/actors/job", "docent/api", "docent/cluster", "docent/gaps", "docent/model", "docent/persistence/catalog",
		"docent/search", "docent/startjob",
	}},
	{"docent/weekly", []string{
		"docent/api", "docent/backoff", "docent/gaps/tracker", "docent/outbound", "docent/persistence/catalog",
	}},

	{"docent/webhooks", []string{
		"docent/actors/job", "docent/actors/thread", "docent/api", "docent/backoff", "docent/outbound",
		"docent/persistence/catalog", "docent/persistence/journal",
	}},

	{"docent/llms", []string{"docent/api", "docent/search"}},

	// The edge, the load suite, the program.
	{"docent/router/reqbody", []string{"docent/api", "docent/model", "docent/search", "docent/stream"}},
	{"docent/router", []string{
		"docent/actors/job", "docent/actors/thread", "docent/api", "docent/cluster", "docent/forge", "docent/gzipped", "docent/llms", "docent/measure",
		"docent/persistence/catalog", "docent/persistence/journal", "docent/persistence/quota", "docent/router/openapi",
		"docent/router/overload", "docent/router/proof", "docent/router/reqbody", "docent/router/sockets", "docent/search",
		"docent/startjob", "docent/stream", "docent/tracing",
		"docent/widget",
	}},
	{"docent/web/oidc", []string{"docent/api"}},
	{"docent/web/password", []string{"docent/api"}},
	{"docent/web", []string{
		"docent/actors/job", "docent/actors/thread", "docent/api", "docent/cluster", "docent/crawl", "docent/docs", "docent/forge", "docent/gaps",
		"docent/gaps/tracker", "docent/gzipped", "docent/health", "docent/ingest", "docent/markup", "docent/model",
		"docent/outbound", "docent/persistence/catalog", "docent/review", "docent/router/openapi", "docent/search",
		"docent/site", "docent/startjob", "docent/stream", "docent/web/assets", "docent/web/diff", "docent/web/oidc",
		"docent/web/password", "docent/weekly", "docent/widget",
	}},
	{"docent/bench", []string{"docent/stream"}},
	{"docent/bench/report", []string{"docent/bench"}},
	{"docent/bench/lab", []string{"docent/bench", "docent/docs", "docent/stream"}},
	{"docent/client", []string{"docent/api", "docent/backoff", "docent/stream"}},
	{"docent/mcp", []string{"docent/api", "docent/client", "docent/search", "docent/tracing"}},
	{"docent/cmd/docent", []string{every}}, // it builds and wires all of them
}

// every stands for all rooms.
const every = "every room"

// parses lists the rooms that may call a parser that recurses with its input: docent/formats, which bounds the depth,
// and those that read what the operator or Docent itself wrote.
var parses = []string{"docent/formats", "docent/cmd/docent", "docent/router/openapi"}

var parseCall = regexp.MustCompile(
	`\b(?:hujson|yaml|toml)\.(?:Parse|Standardize|Minimize|Format|Unmarshal|Load|NewDecoder|NewLoader)\(`)

func TestRepositoryFilesAreParsedWithinADepth(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-f",
		`{{$p := .}}{{range .GoFiles}}{{$p.ImportPath}}:{{$p.Dir}}/{{.}}{{"\n"}}{{end}}`, "docent/...").Output()
	if err != nil {
		t.Fatalf("list the files: %v", err)
	}
	seen := 0
	for line := range strings.Lines(string(out)) {
		room, file, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		seen++
		if slices.Contains(parses, room) {
			continue
		}
		if call := parseCall.Find(src); call != nil {
			t.Errorf("%s calls %s…): read files of repositories with docent/formats", file, call)
		}
	}
	if seen < 100 {
		t.Errorf("only %d files were looked at", seen)
	}
}

func TestEveryRoomImportsOnlyWhatItsLineNames(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}}:{{join .Imports ","}}`, "docent/...").Output()
	if err != nil {
		t.Fatalf("list the packages: %v", err)
	}
	imports := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		room, list, _ := strings.Cut(strings.TrimSpace(line), ":")
		imports[room] = slices.DeleteFunc(strings.Split(list, ","),
			func(i string) bool { return !strings.HasPrefix(i, "docent/") })
	}
	above := map[string]bool{} // the rooms that no line was read of yet
	for _, line := range mayImport {
		above[line.room] = true
	}
	for _, line := range mayImport {
		room, found := imports[line.room]
		if !found {
			t.Errorf("%s has a line in the table and no code: take the line out", line.room)
		}
		for _, imported := range room {
			if !slices.Contains(line.may, imported) && !slices.Contains(line.may, every) {
				t.Errorf("%s imports %s, which its line does not name: take an interface in its ports.go, or argue for the arrow in the table", line.room, imported)
			}
		}
		for _, may := range line.may {
			if may != every && !slices.Contains(room, may) {
				t.Errorf("%s may import %s and does not: take the name out of its line", line.room, may)
			}
			if above[may] {
				t.Errorf("%s imports %s, which stands above it in the table", line.room, may)
			}
		}
		delete(above, line.room)
		delete(imports, line.room)
	}
	for room := range imports {
		t.Errorf("%s is not in the table: give it a line here and in docs/ARCHITECTURE.md", room)
	}
}
