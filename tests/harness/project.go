package harness

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"docent/cmd/docent/operator"
)

// A Project is one documentation set with its keys.
type Project struct{ ID, Domain, Admin, Assistant string }

// NewProject adds a project of a folder, with a key of each kind.
func NewProject(t testing.TB, data, id, source string, flags ...string) Project {
	t.Helper()
	SkipShort(t)
	p := Project{ID: id, Domain: id + ".example.com"}
	Docent(t, append([]string{"project", "add", "--data", data, "--id", id, "--domain", p.Domain, "--source", source,
		"--json"}, flags...)...)
	p.Admin = NewKey(t, data, id, "admin")
	p.Assistant = NewKey(t, data, id, "assistant")
	return p
}

// NewKey makes a key.
func NewKey(t testing.TB, data, project, kind string, flags ...string) string {
	t.Helper()
	var made operator.KeyMade
	out := Docent(t, append([]string{"key", "create", "--data", data, "--project", project, "--kind", kind, "--json"},
		flags...)...)
	if err := json.Unmarshal([]byte(out), &made); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return made.Key
}

// WriteFiles writes a small documentation folder and returns its path.
func WriteFiles(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Harbour is a small documentation set.
var Harbour = map[string]string{
	"index.md":   "---\ntitle: Home\n---\n\nThe harbour has three piers and a lighthouse.\n",
	"ferries.md": "---\ntitle: Ferries\n---\n\n# Ferries\n\nThe ferry to the island leaves every hour from pier two.\n\n## Tickets\n\nTickets are sold on board and cost four coins.\n",
}

// Unlimited are the flags of a project without quotas.
var Unlimited = []string{"--limit-project-hour", "-1", "--limit-key-month", "-1", "--limit-org-hour", "-1",
	"--limit-ip-day", "-1"}

// Plentiful is a quota that is counted and never used up.
const Plentiful = "50000000"

// SignReader signs as a site's own server does.
func SignReader(t testing.TB, secret string, claims jwt.MapClaims) string {
	t.Helper()
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return token
}
