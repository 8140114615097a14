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
	note      string // what differs, or why there is none
}{
	{"POST /v1/project/update/{projectId}", "startUpdate", ""},
	{"GET /v1/project/update-status/{statusId}", "updateStatus", ""},
	{"POST /v1/project/preview/{projectId}", "", "pull requests show their diff; your site's host has previews"},
	{"POST /v2/agent/{projectId}/job", "createJob", ""},
	{"GET /v2/agent/{projectId}/job/{id}", "readJob", ""},
	{"POST /v2/agent/{projectId}/job/{id}/message", "followUp", ""},
	{"POST /v1/agent/{projectId}/job", "createSession", ""},
	{"GET /v1/agent/{projectId}/job/{id}", "readSession", ""},
	{"GET /v1/agent/{projectId}/jobs", "listSessions", ""},
	{"POST /discovery/v1/assistant/{domain}/message", "askV1", ""},
	{"POST /discovery/v2/assistant/{domain}/message", "askV2", ""},
	{"POST /discovery/v1/search/{domain}", "search", ""},
	{"POST /discovery/v1/page/{domain}", "readPage", ""},
	{"GET /v1/analytics/{projectId}/assistant", "listConversations", ""},
	{"GET /v1/analytics/{projectId}/assistant/threads/{threadId}", "readThread", ""},
	{"GET /v1/analytics/{projectId}/assistant/caller-stats", "callerStats", ""},
	{"GET /v1/analytics/{projectId}/searches", "listSearches", ""},
	{"GET /v1/analytics/{projectId}/feedback", "listFeedback", "only feedback on answers"},
	{"GET /v1/analytics/{projectId}/feedback/by-page", "listPageFeedback", "only feedback on answers"},
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
	lists := map[string]string{}
	for i, h := range hosted {
		kind := "Not there"
		if h.here != "" {
			o, ok := ours[h.here]
			if !ok {
				t.Fatalf("%s: there is no operation %s", h.operation, h.here)
			}
			if at := o.Method + " " + o.Path; at != h.operation {
				t.Errorf("%s is here at %s", h.operation, at)
			}
			kind = "The same"
			if o.Deprecated {
				kind = "The same, but deprecated"
			}
		}
		item := "- "
		if i > 0 && h.note != "" && h.note == hosted[i-1].note { // on the line of the one before
			lists[kind] = strings.TrimSuffix(lists[kind], ": "+h.note+"\n")
			item = ", "
		}
		item += "`" + h.operation + "`"
		if h.note != "" {
			item += ": " + h.note
		}
		lists[kind] += item + "\n"
	}
	var b strings.Builder
	for _, kind := range []string{"The same", "The same, but deprecated", "Not there"} {
		fmt.Fprintf(&b, "%s:\n\n%s\n", kind, lists[kind])
	}
	return strings.TrimSuffix(b.String(), "\n")
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
		t.Fatal("the page has lost the marks around its lists")
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
