package catalog

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"docent/api"
)

// withOneOfEach gives a catalogue a row in every table that carries checksums.
func withOneOfEach(t *testing.T, c *Catalog) (key api.Key, pull api.PullRequest) {
	t.Helper()
	addOrganization(t, c, "acme")
	addProject(t, c, "docs")
	addProject(t, c, "blog")
	key = must(c.AddKey(t.Context(), api.Key{Kind: api.AdminKey, Project: "docs", Name: "CI's"}, [32]byte{1}))(t)
	must(c.AddKey(t.Context(), api.Key{Kind: api.AdminKey, Project: "blog"}, [32]byte{2}))(t)
	pull = must(c.AddPull(t.Context(), api.PullRequest{Project: "docs", Title: "One", Head: "docent/1", Base: "main"}))(t)
	must(c.AddPull(t.Context(), api.PullRequest{Project: "docs", Title: "Two", Head: "docent/2", Base: "main"}))(t)
	must(c.Secret(t.Context(), "cookie"))(t)
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
	maria := addPerson(t, c, "maria", api.RoleOwner)
	later := time.Now().Add(time.Hour)
	must(c.AddSession(t.Context(), api.SignIn{Person: maria.ID, ExpiresAt: later, Idle: time.Hour}, [32]byte{3}))(t)
	must(c.AddInvitation(t.Context(), api.Invitation{Org: DefaultOrg, Role: api.RoleViewer, ExpiresAt: later},
		[32]byte{4}))(t)
	must(c.AddLink(t.Context(), api.Link{ExpiresAt: later}, [32]byte{5}))(t)
	if err := c.Audit(t.Context(), api.AuditEntry{Who: "Maria", Action: "key.create"}); err != nil {
		t.Fatal(err)
	}
	must(c.KeepGap(t.Context(), api.Gap{Project: "docs", State: api.GapOpen, Anchor: "msg_1"}))(t)
	if err := c.SetReportHook(t.Context(), api.ReportHook{Project: "docs", URL: "https://a.example"}); err != nil {
		t.Fatal(err)
	}
	must(c.AddReport(t.Context(), api.ReportDelivery{ID: "dlv_1", Project: "docs", Status: api.ReportPending}))(t)
	must(c.AddComment(t.Context(), api.Comment{Pull: pull.ID, Path: "a.md", Line: 1, Text: "x", Author: "u"}))(t)
	addWebhook(t, c, api.Webhook{ID: "whk_1", Project: "docs", URL: "https://a.example"}, 0)
	if err := c.AddEvents(t.Context(), []api.WebhookEvent{testEvent(1, "docs", api.EventJobEnded, time.Now())}, nil, 1); err != nil {
		t.Fatal(err)
	}
	if err := c.SaveSingle(t.Context(), api.WebhookDelivery{Webhook: "whk_1", Event: "evt_docs_1"}); err != nil {
		t.Fatal(err)
	}
	return key, pull
}

func problems(t *testing.T, c *Catalog) (found []string) {
	t.Helper()
	rows, err := c.Check(t.Context(), func(p Problem) bool {
		found = append(found, p.Table+"/"+p.Row)
		return true
	})
	if err != nil || rows == 0 {
		t.Fatalf("%d rows, %v", rows, err)
	}
	return found
}

// TestADamagedRowIsRefusedAndTheOthersServed changes what stands in a row behind the program's back.
func TestADamagedRowIsRefusedAndTheOthersServed(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		c := p.open(Options{Stale: time.Nanosecond})
		key, pull := withOneOfEach(t, c)
		if found := problems(t, c); len(found) != 0 {
			t.Fatalf("in an undamaged catalogue: %v", found)
		}
		set := func(statement string, args ...any) {
			t.Helper()
			if _, err := c.write.NewRaw(statement, args...).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		refused := func(what, table, row string, err error) {
			t.Helper()
			if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), table) || !strings.Contains(err.Error(), row) {
				t.Errorf("%s: %v, want an error that names row %s of %s", what, err, row, table)
			}
		}

		set("UPDATE projects SET domain = 'docr.example.com' WHERE id = 'docs'")
		refused("a project", "projects", "docs", second(c.Project(t.Context(), "docs")))
		refused("a project's domain", "projects", "docs", second(c.ProjectByDomain(t.Context(), "docr.example.com")))
		must(c.Project(t.Context(), "blog"))(t)
		if list := must(c.Projects(t.Context()))(t); len(list) != 1 || list[0].ID != "blog" {
			t.Errorf("listed are %v, want the other one", list)
		}

		set("UPDATE keys SET hash = ? WHERE id = ?", []byte(strings.Repeat("\x03", 32)), key.ID)
		refused("a key", "keys", string(key.ID), second(c.KeyByHash(t.Context(),
			[32]byte([]byte(strings.Repeat("\x03", 32))))))
		must(c.KeyByHash(t.Context(), [32]byte{2}))(t)
		if err := c.RevokeKey(t.Context(), key.ID, time.Now()); err != nil {
			t.Errorf("a damaged key cannot be revoked: %v", err)
		}

		set("UPDATE pulls SET head = 'docent/3' WHERE id = ?", pull.ID)
		refused("a pull request", "pulls", pull.ID, second(c.Pull(t.Context(), pull.ID)))
		refused("its change", "pulls", pull.ID, second(c.UpdatePull(t.Context(), pull)))
		if list := must(c.Pulls(t.Context(), "docs", ""))(t); len(list) != 1 || list[0].Title != "Two" {
			t.Errorf("listed are %v, want the other one", list)
		}

		set("UPDATE counters SET value = 77 WHERE name = 'pulls/docs'")
		refused("a counter", "counters", "pulls/docs", second(c.AddPull(t.Context(),
			api.PullRequest{Project: "docs", Head: "docent/9", Base: "main"})))

		set("UPDATE automations SET name = 'weekla'")
		refused("an automation", "automations", "aut_1", second(c.Automation(t.Context(), "aut_1")))
		set("UPDATE automation_runs SET at = at + 1")
		set("UPDATE updates SET status = 'success'")
		set("UPDATE organizations SET name = 'Acmf' WHERE id = 'acme'")
		was := must(c.Secret(t.Context(), "cookie"))(t)
		set("UPDATE settings SET value = ?", []byte(strings.Repeat("x", 32)))

		found := strings.Join(problems(t, c), " ")
		for _, want := range []string{"projects/docs", "pulls/" + pull.ID, "counters/pulls/docs", "automations/aut_1",
			"automation_runs/run-1", "updates/", "organizations/acme", "settings/secret/cookie"} {
			if !strings.Contains(found, want) {
				t.Errorf("the check does not name %s: %s", want, found)
			}
		}
		if made := must(c.Secret(t.Context(), "cookie"))(t); len(made) != 32 || string(made) == string(was) ||
			strings.HasPrefix(string(made), "xxxx") {
			t.Errorf("a damaged secret is not made anew: %q", made)
		}

		if err := c.Accept(t.Context(), "projects", "docs"); err != nil {
			t.Fatal(err)
		}
		if got := must(c.Project(t.Context(), "docs"))(t); got.Domain != "docr.example.com" {
			t.Errorf("accepted is %+v", got)
		}
		for _, name := range [][2]string{{"projects", "nothing"}, {"jobs", "docs"}} {
			if err := c.Accept(t.Context(), name[0], name[1]); !errors.Is(err, api.ErrNotFound) {
				t.Errorf("accepting %v: %v", name, err)
			}
		}
	})
}

// undo are statements that take from older tables what the migrations after that one brought to them.
func undo(t *testing.T, migration string) (statements []string) {
	t.Helper()
	older := map[string]string{} // indexes that were there before
	tables := tablesAfter(t, migration)
	find := func(text, what string) [][]string { return regexp.MustCompile(what).FindAllStringSubmatch(text, -1) }
	for _, name := range must(fs.Glob(migrationFiles, "migrations/*.sql"))(t) {
		text := string(must(migrationFiles.ReadFile(name))(t))
		if path.Base(name) < migration+"~" {
			for _, m := range find(text, `(?m)^CREATE (?:UNIQUE )?INDEX (\w+) ON .*$`) {
				older[m[1]] = m[0]
			}
			continue
		}
		for _, m := range find(text, `CREATE (?:UNIQUE )?INDEX (\w+) ON (\w+)`) {
			if !slices.Contains(tables, m[2]) {
				statements = append(statements, "DROP INDEX "+m[1])
			}
		}
		for _, m := range find(text, `(?m)^DROP INDEX (\w+)`) {
			if older[m[1]] != "" {
				statements = append(statements, "DROP INDEX IF EXISTS "+m[1], older[m[1]])
			}
		}
	}
	for _, name := range must(fs.Glob(migrationFiles, "migrations/*.sql"))(t) {
		if path.Base(name) < migration+"~" {
			continue
		}
		for _, m := range find(string(must(migrationFiles.ReadFile(name))(t)), `ALTER TABLE (\w+) ADD COLUMN (\w+)`) {
			statements = append(statements, "ALTER TABLE "+m[1]+" DROP COLUMN "+m[2])
		}
	}
	return statements
}

// tablesAfter are the tables that the migrations after that one make.
func tablesAfter(t *testing.T, migration string) (tables []string) {
	t.Helper()
	files := must(fs.Glob(migrationFiles, "migrations/*.sql"))(t)
	for _, name := range files {
		if path.Base(name) < migration+"~" {
			continue
		}
		text := must(migrationFiles.ReadFile(name))(t)
		for _, part := range strings.Split(string(text), "CREATE TABLE ")[1:] {
			tables = append(tables, strings.Fields(part)[0])
		}
	}
	return tables
}

// TestAnOlderCatalogGetsItsChecksums takes from a catalogue what the checksums' migration and those after it brought,
// and opens it again.
func TestAnOlderCatalogGetsItsChecksums(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		c := p.open(Options{})
		withOneOfEach(t, c)
		want := must(c.Projects(t.Context()))(t)
		younger := tablesAfter(t, checksMigration)
		statements := []string{"DROP TABLE stores", "DELETE FROM bun_migrations WHERE name >= '" + checksMigration + "'",
			"INSERT INTO projections (name, position) VALUES ('jobs', 57)"}
		statements = append(statements, undo(t, checksMigration)...)
		for _, table := range slices.Backward(younger) {
			statements = append(statements, "DROP TABLE "+table)
		}
		for _, table := range checkedTables {
			if !slices.Contains(younger, table.name) {
				statements = append(statements, "ALTER TABLE "+table.name+" DROP COLUMN checksum")
			}
		}
		for _, s := range statements {
			if _, err := c.write.Exec(s); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		c = p.open(Options{})
		if found := problems(t, c); len(found) != 0 {
			t.Errorf("after the migration: %v", found)
		}
		if got := must(c.Projects(t.Context()))(t); !reflect.DeepEqual(got, want) {
			t.Errorf("projects are\n%+v, want\n%+v", got, want)
		}
		if is := must(c.Identity(t.Context()))(t); is.ID == "" || is.Journal != "" || is.Position != 57 {
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
		"searches": "a count for people", "stores": "compared with the journal",
	}
	for _, table := range checkedTables {
		others[table.name] = "checked"
	}
	err := fs.WalkDir(migrationFiles, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".sql" {
			return err
		}
		text, err := migrationFiles.ReadFile(name)
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

// TestAFlippedBitInTheFileIsFound flips bits where rows stand in the file of a SQLite catalogue: each is found by the
// open or by the check, or changes no row.
func TestAFlippedBitInTheFileIsFound(t *testing.T) {
	p := place{t, "sqlite:" + t.TempDir() + "/catalog.db"}
	c := p.open(Options{})
	withOneOfEach(t, c)
	wantKeys, wantPulls, wantProjects := must(c.Keys(t.Context(), KeyQuery{}))(t), must(c.Pulls(t.Context(), "docs",
		""))(t), must(c.Projects(t.Context()))(t)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	file := strings.TrimPrefix(p.dsn, "sqlite:")
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
			c, err := Open(t.Context(), p.dsn, Options{Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				return true
			}
			defer c.Close()
			n := 0
			if _, err := c.Check(t.Context(), func(Problem) bool { n++; return true }); err != nil || n > 0 {
				return true
			}
			keys, errKeys := c.Keys(t.Context(), KeyQuery{})
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
