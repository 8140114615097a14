package catalog_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"docent/api"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/catalog/database"
	"docent/persistence/catalog/people"
)

// withOneOfEach gives a catalog a row in every table that carries checksums.
func withOneOfEach(t *testing.T, c *catalog.Catalog) (key api.Key, pull api.PullRequest) {
	t.Helper()
	catalogtest.AddOrganization(t, c, "acme")
	catalogtest.AddProject(t, c, "docs")
	catalogtest.AddProject(t, c, "blog")
	key = catalogtest.Must(c.AddKey(t.Context(), api.Key{Kind: api.AdminKey, Project: "docs", Name: "CI's"}, [32]byte{1}))(t)
	catalogtest.Must(c.AddKey(t.Context(), api.Key{Kind: api.AdminKey, Project: "blog"}, [32]byte{2}))(t)
	pull = catalogtest.Must(c.AddPull(t.Context(), api.PullRequest{Project: "docs", Title: "One", Head: "docent/1", Base: "main"}))(t)
	catalogtest.Must(c.AddPull(t.Context(), api.PullRequest{Project: "docs", Title: "Two", Head: "docent/2", Base: "main"}))(t)
	catalogtest.Must(c.Secret(t.Context(), "cookie"))(t)
	u, _, err := c.AddUpdate(t.Context(), "docs")
	if err != nil {
		t.Fatal(err)
	}
	u.Status = api.UpdateInProgress
	if err := c.SaveUpdate(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	a := api.Automation{ID: "aut_1", Project: "docs", Name: "weekly", Prompt: "weekly.md", Cron: "0 9 * * 1", DailyCap: 5,
		CreatedAt: time.Now()}
	if err := c.AddAutomation(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	run, begun, err := c.BeginRun(t.Context(), api.AutomationRun{Key: "run-1", Automation: a.ID, At: time.Now()},
		func(*api.Automation) {})
	if err != nil || !begun {
		t.Fatal(begun, err)
	}
	run.Status = api.RunStarted
	if err := c.SaveRun(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	maria := catalogtest.AddPerson(t, c, "maria", api.RoleOwner)
	later := time.Now().Add(time.Hour)
	catalogtest.Must(c.AddSession(t.Context(), api.SignIn{Person: maria.ID, ExpiresAt: later, Idle: time.Hour}, [32]byte{3}))(t)
	catalogtest.Must(c.AddInvitation(t.Context(), api.Invitation{Org: api.DefaultOrg, Role: api.RoleViewer, ExpiresAt: later},
		[32]byte{4}))(t)
	catalogtest.Must(c.AddLink(t.Context(), api.Link{ExpiresAt: later}, [32]byte{5}))(t)
	if err := c.Audit(t.Context(), api.AuditEntry{Who: "Maria", Action: "key.create"}); err != nil {
		t.Fatal(err)
	}
	catalogtest.Must(c.KeepGap(t.Context(), api.Gap{Project: "docs", State: api.GapOpen, Anchor: "msg_1"}))(t)
	catalogtest.Must(c.AddComment(t.Context(), api.Comment{Pull: pull.ID, Path: "a.md", Line: 1, Text: "x", Author: "u"}))(t)
	catalogtest.AddWebhook(t, c, api.Webhook{ID: "whk_1", Project: "docs", URL: "https://a.example"}, 0)
	if err := c.AddEvents(t.Context(), []api.WebhookEvent{catalogtest.Event(1, "docs", api.EventJobEnded, time.Now())}, nil, 1); err != nil {
		t.Fatal(err)
	}
	if err := c.SaveSingle(t.Context(), api.WebhookDelivery{Webhook: "whk_1", Event: "evt_docs_1"}); err != nil {
		t.Fatal(err)
	}
	if err := c.KeepWritten(t.Context(), "docs", api.WrittenSection{Key: "00ff", Questions: []string{"Why?"}}, 700, 90); err != nil {
		t.Fatal(err)
	}
	return key, pull
}

// TestADamagedRowIsRefusedAndTheOthersServed changes what stands in a row behind the program's back.
func TestADamagedRowIsRefusedAndTheOthersServed(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c := p.Open(catalog.Options{Stale: time.Nanosecond})
		key, pull := withOneOfEach(t, c)
		if found := catalogtest.Problems(t, c); len(found) != 0 {
			t.Fatalf("in an undamaged catalog: %v", found)
		}
		set := func(statement string, args ...any) {
			t.Helper()
			if _, err := c.Write.NewRaw(statement, args...).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		refused := func(what, table, row string, err error) {
			t.Helper()
			if !errors.Is(err, catalog.ErrCorrupt) || !strings.Contains(err.Error(), table) || !strings.Contains(err.Error(), row) {
				t.Errorf("%s: %v, want an error that names row %s of %s", what, err, row, table)
			}
		}

		set("UPDATE projects SET domain = 'docr.example.com' WHERE id = 'docs'")
		refused("a project", "projects", "docs", catalogtest.Second(c.Project(t.Context(), "docs")))
		refused("a project's domain", "projects", "docs", catalogtest.Second(c.ProjectByDomain(t.Context(), "docr.example.com")))
		catalogtest.Must(c.Project(t.Context(), "blog"))(t)
		if list := catalogtest.Must(c.Projects(t.Context()))(t); len(list) != 1 || list[0].ID != "blog" {
			t.Errorf("listed are %v, want the other one", list)
		}

		set("UPDATE keys SET hash = ? WHERE id = ?", []byte(strings.Repeat("\x03", 32)), key.ID)
		refused("a key", "keys", string(key.ID), catalogtest.Second(c.KeyByHash(t.Context(),
			[32]byte([]byte(strings.Repeat("\x03", 32))))))
		catalogtest.Must(c.KeyByHash(t.Context(), [32]byte{2}))(t)
		if err := c.RevokeKey(t.Context(), key.ID, time.Now()); err != nil {
			t.Errorf("a damaged key cannot be revoked: %v", err)
		}

		set("UPDATE pulls SET head = 'docent/3' WHERE id = ?", pull.ID)
		refused("a pull request", "pulls", pull.ID, catalogtest.Second(c.Pull(t.Context(), pull.ID)))
		refused("its change", "pulls", pull.ID, catalogtest.Second(c.UpdatePull(t.Context(), pull)))
		if list := catalogtest.Must(c.Pulls(t.Context(), "docs", ""))(t); len(list) != 1 || list[0].Title != "Two" {
			t.Errorf("listed are %v, want the other one", list)
		}

		set("UPDATE counters SET value = 77 WHERE name = 'pulls/docs'")
		refused("a counter", "counters", "pulls/docs", catalogtest.Second(c.AddPull(t.Context(),
			api.PullRequest{Project: "docs", Head: "docent/9", Base: "main"})))

		set("UPDATE automations SET name = 'weekla'")
		refused("an automation", "automations", "aut_1", catalogtest.Second(c.Automation(t.Context(), "aut_1")))
		set("UPDATE automation_runs SET at = at + 1")
		set("UPDATE updates SET status = 'success'")
		set("UPDATE organizations SET name = 'Acmf' WHERE id = 'acme'")
		was := catalogtest.Must(c.Secret(t.Context(), "cookie"))(t)
		set("UPDATE settings SET value = ?", []byte(strings.Repeat("x", 32)))

		found := strings.Join(catalogtest.Problems(t, c), " ")
		for _, want := range []string{"projects/docs", "pulls/" + pull.ID, "counters/pulls/docs", "automations/aut_1",
			"automation_runs/run-1", "updates/", "organizations/acme", "settings/secret/cookie"} {
			if !strings.Contains(found, want) {
				t.Errorf("the check does not name %s: %s", want, found)
			}
		}
		if made := catalogtest.Must(c.Secret(t.Context(), "cookie"))(t); len(made) != 32 || string(made) == string(was) ||
			strings.HasPrefix(string(made), "xxxx") {
			t.Errorf("a damaged secret is not replaced: %q", made)
		}

		if err := c.Accept(t.Context(), "projects", "docs"); err != nil {
			t.Fatal(err)
		}
		if got := catalogtest.Must(c.Project(t.Context(), "docs"))(t); got.Domain != "docr.example.com" {
			t.Errorf("accepted is %+v", got)
		}
		for _, name := range [][2]string{{"projects", "nothing"}, {"jobs", "docs"}} {
			if err := c.Accept(t.Context(), name[0], name[1]); !errors.Is(err, api.ErrNotFound) {
				t.Errorf("accepting %v: %v", name, err)
			}
		}
	})
}

// TestAnOlderCatalogGetsItsChecksums takes from a catalog what the checksums' migration and those after it brought,
// and opens it again.
func TestAnOlderCatalogGetsItsChecksums(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c := p.Open(catalog.Options{})
		withOneOfEach(t, c)
		want := catalogtest.Must(c.Projects(t.Context()))(t)
		younger := catalogtest.TablesAfter(t, database.ChecksMigration)
		statements := []string{"DROP TABLE stores", "DELETE FROM bun_migrations WHERE name >= '" + database.ChecksMigration + "'",
			"INSERT INTO projections (name, position) VALUES ('jobs', 57)"}
		statements = append(statements, catalogtest.Undo(t, database.ChecksMigration)...)
		for _, table := range slices.Backward(younger) {
			statements = append(statements, "DROP TABLE "+table)
		}
		for _, table := range c.Tables() {
			if !slices.Contains(younger, table.Name) {
				statements = append(statements, "ALTER TABLE "+table.Name+" DROP COLUMN checksum")
			}
		}
		for _, s := range statements {
			if _, err := c.Write.Exec(s); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		c = p.Open(catalog.Options{})
		if found := catalogtest.Problems(t, c); len(found) != 0 {
			t.Errorf("after the migration: %v", found)
		}
		if got := catalogtest.Must(c.Projects(t.Context()))(t); !reflect.DeepEqual(got, want) {
			t.Errorf("projects are\n%+v, want\n%+v", got, want)
		}
		if is := catalogtest.Must(c.Identity(t.Context()))(t); is.ID == "" || is.Journal != "" || is.Position != 57 {
			t.Errorf("its identity is %+v", is)
		}
	})
}

// TestEveryTableIsCheckedOrACopy reads the migrations: a new table must carry checksums, or be named here with the
// reason why not.
func TestEveryTableIsCheckedOrACopy(t *testing.T) {
	others := map[string]string{
		"jobs": "a copy", "questions": "a copy", "rated_pages": "a copy", "cited_pages": "a copy", "projections": "of copies",
		"question_texts": "a copy", "text_queue": "of copies",
		"searches": "a count for people", "agent_reads": "a count for people", "stores": "compared with the journal",
		"report_hooks": "dropped since", "report_deliveries": "dropped since",
	}
	c := catalogtest.Place{T: t, DSN: "sqlite:" + filepath.Join(t.TempDir(), "catalog.db")}.Open(catalog.Options{})
	for _, table := range c.Tables() {
		others[table.Name] = "checked"
	}
	err := fs.WalkDir(database.Migrations, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".sql" {
			return err
		}
		text, err := database.Migrations.ReadFile(name)
		for _, part := range strings.Split(string(text), "CREATE TABLE ")[1:] {
			if table := strings.Fields(part)[0]; others[table] == "" {
				t.Errorf("%s makes the table %s, whose rows carry no checksum", name, table)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestAFlippedBitInTheFileIsFound flips bits where rows stand in the file of a SQLite catalog: each is found by the
// open or by the check, or changes no row.
func TestAFlippedBitInTheFileIsFound(t *testing.T) {
	p := catalogtest.Place{T: t, DSN: "sqlite:" + t.TempDir() + "/catalog.db"}
	c := p.Open(catalog.Options{})
	withOneOfEach(t, c)
	wantKeys, wantPulls, wantProjects := catalogtest.Must(c.Keys(t.Context(), people.KeyQuery{}))(t), catalogtest.Must(c.Pulls(t.Context(), "docs",
		""))(t), catalogtest.Must(c.Projects(t.Context()))(t)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	file := strings.TrimPrefix(p.DSN, "sqlite:")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found, same := 0, 0
	step := max(1, len(whole)/150)
	for at := 101; at < len(whole); at += step {
		text := append([]byte(nil), whole...)
		text[at] ^= 1 << (at % 8)
		for _, suffix := range []string{"-wal", "-shm"} {
			os.Remove(file + suffix)
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		wrong := func() bool {
			c, err := catalog.Open(t.Context(), p.DSN, catalog.Options{Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				return true
			}
			defer c.Close()
			n := 0
			if _, err := c.Check(t.Context(), func(catalog.Problem) bool { n++; return true }); err != nil || n > 0 {
				return true
			}
			keys, errKeys := c.Keys(t.Context(), people.KeyQuery{})
			pulls, errPulls := c.Pulls(t.Context(), "docs", "")
			projects, errProjects := c.Projects(t.Context())
			if err := errors.Join(errKeys, errPulls, errProjects); err != nil {
				return true
			}
			if !reflect.DeepEqual(keys, wantKeys) || !reflect.DeepEqual(pulls, wantPulls) ||
				!reflect.DeepEqual(projects, wantProjects) {
				t.Errorf("the flipped bit at byte %d goes unseen", at)
			}
			return false
		}
		if wrong() {
			found++
		} else {
			same++
		}
	}
	if found == 0 || same == 0 {
		t.Errorf("%d found, %d without effect: the test flips in the wrong places", found, same)
	}
	t.Logf("%d found, %d without effect", found, same)
}
