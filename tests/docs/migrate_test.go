package docs

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"docent/api/openapi"
	"docent/tests/harness"
)

// hosted are the operations that the hosted platform publishes, in its order, with what differs here.
var hosted = []struct {
	operation string
	here      string // the id of ours; empty if there is none
	note      string // what is more here, or why there is none
}{
	{"POST /v1/project/update/{projectId}", "startUpdate", ""},
	{"GET /v1/project/update-status/{statusId}", "updateStatus", ""},
	{"POST /v1/project/preview/{projectId}", "", "pull requests show their diff; your site's host has previews"},
	{"POST /v2/agent/{projectId}/job", "createJob", "`asDraft`, `model`, `dryRun`, `Idempotency-Key`; `title`, `message`, `outcome`"},
	{"GET /v2/agent/{projectId}/job/{id}", "readJob", "`wait` and `If-None-Match`"},
	{"POST /v2/agent/{projectId}/job/{id}/message", "followUp", "`Idempotency-Key`; a new pull request after a merge"},
	{"POST /v1/agent/{projectId}/job", "createSession", "`Idempotency-Key`; a repeat within ten seconds is the same job"},
	{"GET /v1/agent/{projectId}/job/{id}", "readSession", ""},
	{"GET /v1/agent/{projectId}/jobs", "listSessions", "`skip` and `take`"},
	{"POST /discovery/v1/assistant/{domain}/message", "askV1", "`threadKey`; the answer can be resumed"},
	{"POST /discovery/v2/assistant/{domain}/message", "askV2", "`threadKey`; the answer can be resumed"},
	{"POST /discovery/v1/search/{domain}", "search", "`currentPath`; more in `metadata`"},
	{"POST /discovery/v1/page/{domain}", "readPage", ""},
	{"GET /v1/analytics/{projectId}/assistant", "listConversations", "`messageId`, `caller`, `channel`, `model`, `rating`, `totals`; no `queryCategory`"},
	{"GET /v1/analytics/{projectId}/assistant/threads/{threadId}", "readThread", "what was replaced"},
	{"GET /v1/analytics/{projectId}/assistant/caller-stats", "callerStats", "`callers`, one by one"},
	{"GET /v1/analytics/{projectId}/searches", "listSearches", "`results`; no `ctr` and `topClickedPage`"},
	{"GET /v1/analytics/{projectId}/feedback", "listFeedback", "`rating`, `query`, `threadId`; only feedback on answers"},
	{"GET /v1/analytics/{projectId}/feedback/by-page", "listPageFeedback", "only feedback on answers, by cited page"},
	{"GET /v1/analytics/{projectId}/views", "", "your site's own analytics count views"},
	{"GET /v1/analytics/{projectId}/visitors", "", "your site's own analytics count views"},
	{"POST /v1/static-export/jobs", "", "`docent llms` writes the pages as Markdown"},
	{"GET /v1/static-export/jobs/{jobId}", "", "`docent llms` writes the pages as Markdown"},
	{"POST /v1/static-export/jobs/{jobId}/bundle", "", "`docent llms` writes the pages as Markdown"},
	{"POST /v1/workflow/{projectId}/{workflowSchemaId}/trigger", "", "`docent automation run`, and the console"},
}

// migration is the part of the page that is made: what became of each of theirs.
func migration(t *testing.T) string {
	t.Helper()
	ours := map[string]openapi.Operation{}
	for _, g := range openapi.Read().Groups {
		for _, o := range g.Operations {
			ours[o.ID] = o
		}
	}
	var became []string
	operations := map[string]string{} // by what became of them
	for _, h := range hosted {
		what := "not there"
		if h.here != "" {
			o, ok := ours[h.here]
			if !ok {
				t.Fatalf("%s: there is no operation %s", h.operation, h.here)
			}
			if at := o.Method + " " + o.Path; at != h.operation {
				t.Errorf("%s is here at %s", h.operation, at)
			}
			what = "the same"
			if h.note != "" {
				what = "extended"
			}
			if o.Deprecated {
				what += ", deprecated"
			}
		}
		if h.note != "" {
			what += ": " + h.note
		}
		if operations[what] == "" {
			became = append(became, what)
			operations[what] = "`" + h.operation + "`"
		} else {
			operations[what] += ", `" + h.operation + "`"
		}
	}
	var b strings.Builder
	b.WriteString("| Hosted | Here |\n| --- | --- |\n")
	for _, what := range became {
		fmt.Fprintf(&b, "| %s | %s |\n", operations[what], what)
	}
	return b.String()
}

// TestMigrationNamesEveryOperation holds the page for those who come from the hosted platform against the API's
// description.
func TestMigrationNamesEveryOperation(t *testing.T) {
	const path = "../../docs/api/migrate.mdx"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(text), "writes them again */}\n")
	_, tail, ok2 := strings.Cut(rest, "{/* end of operations */}")
	if !ok1 || !ok2 {
		t.Fatal("the page has lost the marks around its tables")
	}
	want := head + "writes them again */}\n\n" + migration(t) + "\n{/* end of operations */}" + tail
	if *harness.Update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		t.Errorf("%s does not show the operations as they are: run go test ./tests/docs -run Migration -update", path)
	}
}
