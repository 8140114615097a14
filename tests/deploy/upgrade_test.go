package deploy

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"docent/api"
	"docent/persistence/catalog/catalogtest"
	catalogdb "docent/persistence/catalog/database"
	"docent/persistence/datadir"
	"docent/persistence/secrets"
	"docent/tests/harness"
)

// A released is a data directory as an earlier version left it, unpacked: scripts/make-released-data made it.
type released struct {
	data  string
	flags []string // by which its catalog is found
	db    *sql.DB  // its catalog

	// What it holds, besides the project harbour with a folder that is no longer there.
	Made             string
	Admin, Assistant string
	Jobs             []string // two: the first with one instruction, the second with a follow-up
	Thread           string   // of two questions
	People           bool     // an owner, an editor and an owner who is disabled, of the organization default
	tableList        string
	postgres         bool
}

const releasedData = "testdata/released"

// eachReleased runs a test on a copy of each released data directory, those on PostgreSQL where there is one.
func eachReleased(t *testing.T, test func(t *testing.T, r *released)) {
	t.Parallel()
	harness.SkipShort(t)
	packed, err := filepath.Glob(filepath.Join(releasedData, "*.tar.gz"))
	if err != nil || len(packed) < 10 {
		t.Fatalf("%d released data directories, %v", len(packed), err)
	}
	for _, path := range packed {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".tar.gz"), func(t *testing.T) {
			t.Parallel()
			test(t, unpackReleased(t, path))
		})
	}
}

func unpackReleased(t *testing.T, path string) *released {
	t.Helper()
	r := &released{data: filepath.Join(t.TempDir(), "data")}
	unpackTar(t, path, r.data)
	text, err := os.ReadFile(filepath.Join(r.data, "expected.json"))
	if err = errors.Join(err, json.Unmarshal(text, r), os.Remove(filepath.Join(r.data, "expected.json"))); err != nil {
		t.Fatal(err)
	}
	driver, dsn := "sqlite", filepath.Join(r.data, datadir.Catalog)
	r.tableList = "SELECT name, sql FROM sqlite_master ORDER BY name"
	if strings.Contains(path, "postgres") {
		driver, dsn = "pgx", catalogtest.Postgres(t)
		r.flags = []string{"--catalog-dsn", dsn}
		r.postgres = true
		r.tableList = "SELECT table_name, string_agg(column_name || ' ' || data_type, ',' ORDER BY ordinal_position) " +
			"FROM information_schema.columns WHERE table_schema = 'public' GROUP BY 1 ORDER BY 1"
	}
	if r.db, err = sql.Open(driver, dsn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.db.Close() })
	if r.postgres {
		r.loadDump(t)
	}
	return r
}

func unpackTar(t *testing.T, path, into string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	inflated, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for entries := tar.NewReader(inflated); ; {
		h, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil || !filepath.IsLocal(h.Name) {
			t.Fatal(h, err)
		}
		to := filepath.Join(into, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(to, 0o700)
		} else {
			var text []byte
			if text, err = io.ReadAll(entries); err == nil {
				err = os.WriteFile(to, text, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// loadDump fills the test's database with the dump of another.
func (r *released) loadDump(t *testing.T) {
	t.Helper()
	path := filepath.Join(r.data, "catalog.sql")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var statements strings.Builder
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, `\`) || strings.Contains(line, "'search_path'") || strings.HasPrefix(line, "CREATE SCHEMA") ||
			strings.HasPrefix(line, "COMMENT ON SCHEMA") || strings.HasPrefix(line, "SET ") {
			continue
		}
		statements.WriteString(line)
	}
	if _, err := r.db.ExecContext(t.Context(), statements.String()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// contents are the schema of the catalog, and what each of its tables holds.
func (r *released) contents(t *testing.T) map[string]string {
	t.Helper()
	rows, err := r.db.QueryContext(t.Context(), r.tableList)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	all := map[string]string{}
	var tables []string
	for rows.Next() {
		var name string
		var made sql.NullString
		if err := rows.Scan(&name, &made); err != nil {
			t.Fatal(err)
		}
		all[name] = made.String
		if r.postgres || strings.HasPrefix(made.String, "CREATE TABLE") {
			tables = append(tables, name)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		all[table] += "\n" + r.rowsOf(t, table)
	}
	return all
}

func (r *released) rowsOf(t *testing.T, table string) string {
	t.Helper()
	rows, err := r.db.QueryContext(t.Context(), `SELECT * FROM "`+table+`"`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for rows.Next() {
		values := make([]any, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprint(values...))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// get asks the API with the directory's own admin key.
func (r *released) get(t *testing.T, s *harness.Server, path string, into any) {
	t.Helper()
	resp, err := s.Client(r.Admin).Do(t.Context(), http.MethodGet, path, nil)
	if err != nil {
		t.Fatalf("%s: %v\n%s", path, err, s.Log)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// jobs are the jobs as the API shows them, each after its work has ended.
func (r *released) jobs(t *testing.T, s *harness.Server) (links, statuses []string) {
	t.Helper()
	for _, id := range r.Jobs {
		job, err := s.Client(r.Admin).WaitForJob(t.Context(), "harbour", id)
		if err != nil {
			t.Fatalf("%v\n%s", err, s.Log)
		}
		if job.PRLink == nil {
			t.Fatalf("a job without a pull request: %+v", job)
		}
		links, statuses = append(links, *job.PRLink), append(statuses, string(job.Status))
	}
	return links, statuses
}

// TestEveryReleasedDataIsServed starts this version on the data directories of all before it: what they hold is there, and
// work goes on where it stood.
func TestEveryReleasedDataIsServed(t *testing.T) {
	eachReleased(t, func(t *testing.T, r *released) {
		s := harness.NewServer(t, r.data, r.flags...)
		links, statuses := r.jobs(t, s)
		if links[0] == links[1] || statuses[0] != "completed" || statuses[1] != "completed" {
			t.Errorf("the jobs: %v, %v", links, statuses)
		}
		var listed json.RawMessage
		r.get(t, s, "/v1/agent/harbour/jobs", &listed)
		if !strings.Contains(string(listed), r.Jobs[0]) || !strings.Contains(string(listed), r.Jobs[1]) {
			t.Errorf("the list of jobs: %s", listed)
		}
		thread := "/v1/analytics/harbour/assistant/threads/" + r.Thread
		var conversation struct{ Messages []struct{ Content string } }
		r.get(t, s, thread, &conversation)
		if m := conversation.Messages; len(m) != 4 || m[0].Content != "When does the ferry leave?" ||
			!strings.Contains(m[1].Content, "every hour") || !strings.Contains(m[3].Content, "four coins") {
			t.Errorf("the conversation: %+v", m)
		}
		pulls := harness.Docent(t, append([]string{"pull", "list", "--data", r.data, "--project", "harbour", "--json"}, r.flags...)...)
		if n := strings.Count(strings.TrimSpace(pulls), "\n") + 1; n != 2 {
			t.Errorf("%d pull requests: %s", n, pulls)
		}

		// The folder of its source is not on this machine.
		source := harness.WriteFiles(t, map[string]string{
			"ferries.md":    "# Ferries\n\nThe ferry to the iland leaves every hour from pier two.\n\n## Tickets\n\nTickets cost four coins.\n",
			"lighthouse.md": "# Lighthouse\n\nThe lighthouse stands at the end of the north mole.\n"})
		harness.Docent(t, append([]string{"project", "set", "harbour", "--data", r.data, "--source", source}, r.flags...)...)
		harness.Docent(t, append([]string{"index", "harbour", "--data", r.data}, r.flags...)...)
		p := harness.Project{ID: "harbour", Domain: "harbour.example.com", Admin: r.Admin, Assistant: r.Assistant}
		reader := s.Client(r.Assistant)
		if answer, err := harness.Ask(t.Context(), reader, p, r.Thread, "Where does the lighthouse stand?"); err != nil ||
			!strings.Contains(answer.Answer, "north mole") || string(answer.Thread) != r.Thread {
			t.Errorf("the next question: %+v, %v", answer, err)
		}
		found, err := reader.Do(t.Context(), http.MethodPost, "/discovery/v1/search/"+p.Domain, map[string]string{"query": "tickets"})
		if err != nil {
			t.Fatal(err)
		}
		if text := harness.TextOf(t, found); !strings.Contains(text, "four coins") {
			t.Errorf("the search: %s", text)
		}
		again, err := s.Client(r.Admin).Do(t.Context(), http.MethodPost, "/v2/agent/harbour/job/"+r.Jobs[1]+"/message",
			map[string]string{"prompt": `Replace "four coins" with "five coins" in ferries.md.`})
		if err != nil {
			t.Fatal(err)
		}
		again.Body.Close()
		if after, statuses := r.jobs(t, s); after[1] != links[1] || statuses[1] != "completed" {
			t.Errorf("a follow-up: %v, %v\n%s", after, statuses, s.Log)
		}
		s.Stop()
		for _, check := range []string{"journal", "catalog"} {
			harness.Docent(t, append([]string{check, "check", "--data", r.data}, r.flags...)...)
		}
		if w, err := datadir.ReadFormat(r.data); err != nil || w.Format != datadir.Format || w.Version == "" {
			t.Errorf("the directory says of itself %+v, %v", w, err)
		}
		s.Start()
		r.get(t, s, thread, &conversation)
		if n := len(conversation.Messages); n != 6 {
			t.Errorf("%d messages after another start", n)
		}
	})
}

// TestOwnersOfOlderDataRunTheServerOn has the owners of the default organization be operators, who were that by being owners
// before. It happens once: who becomes an owner later is no operator.
func TestOwnersOfOlderDataRunTheServerOn(t *testing.T) {
	eachReleased(t, func(t *testing.T, r *released) {
		if !r.People {
			return
		}
		person := func(args ...string) string {
			t.Helper()
			return harness.Docent(t, append(append([]string{"person"}, args...), append([]string{"--data", r.data},
				r.flags...)...)...)
		}
		operators := func() (list []string) {
			t.Helper()
			for people := json.NewDecoder(strings.NewReader(person("list", "--json"))); people.More(); {
				var p api.Person
				if err := people.Decode(&p); err != nil {
					t.Fatal(err)
				}
				if p.Operator {
					list = append(list, p.Email)
				}
			}
			return list
		}
		if got := operators(); !slices.Equal(got, []string{"owner@harbour.example.com"}) {
			t.Errorf("operators are %v", got)
		}
		person("role", "editor@harbour.example.com", "owner")
		person("enable", "gone@harbour.example.com")
		person("operator", "owner@harbour.example.com", "--off")
		if got := operators(); len(got) > 0 {
			t.Errorf("afterwards operators are %v", got)
		}
		person("operator", "editor@harbour.example.com")
		if got := operators(); !slices.Equal(got, []string{"editor@harbour.example.com"}) {
			t.Errorf("in the end operators are %v", got)
		}
	})
}

// An oldRow is a row of a table that is no more.
type oldRow struct {
	fields []any
	catalogdb.Checked
}

// Contents is a row's.
func (r *oldRow) Contents() (table, key string, fields []any) { return "", "", r.fields }

// insert stores a row of texts and numbers, with its checksum.
func (r *released) insert(t *testing.T, table string, fields ...any) {
	t.Helper()
	row := &oldRow{fields: fields}
	catalogdb.SetChecksum(row)
	var values []string
	for _, f := range append(fields, row.Checksum) {
		if text, ok := f.(string); ok {
			f = "'" + text + "'"
		}
		values = append(values, fmt.Sprint(f))
	}
	if _, err := r.db.ExecContext(t.Context(), "INSERT INTO "+table+" VALUES ("+strings.Join(values, ", ")+")"); err != nil {
		t.Fatal(err)
	}
}

// TestWebhooksOfReportsOfOlderDataGoOn starts this version on data of versions in which a project's weekly report had a
// webhook of its own: what waited is sent to it, and so is the last week's report.
func TestWebhooksOfReportsOfOlderDataGoOn(t *testing.T) {
	eachReleased(t, func(t *testing.T, r *released) {
		const pending = "rpt_harbour_2025-W40"
		if _, err := r.db.ExecContext(t.Context(), "SELECT 1 FROM report_hooks"); err != nil {
			return // reports were not there yet
		}
		readers := harness.NewReportReceiver(t)
		secret, err := secrets.Open(filepath.Join(r.data, datadir.Secrets)).Keep("harbour", "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz")
		if err != nil {
			t.Fatal(err)
		}
		r.insert(t, "report_hooks", "harbour", fmt.Sprintf(`{"url":"%s/harbour","secret":"%s","timeZone":"Europe/Berlin",`+
			`"createdAt":"2025-09-01T00:00:00Z"}`, readers.URL, secret))
		r.insert(t, "report_deliveries", pending, "harbour", "pending", int64(1759730400000), int64(1759730400000),
			`{"week":"2025-W40","payload":{"type":"report.weekly"},"attempts":3,"createdAt":"2025-10-06T06:00:00Z"}`)
		s := harness.NewServer(t, r.data, append([]string{"--config", harness.AllowLoopback(t)}, r.flags...)...)
		harness.Until(t, "both reports are taken", func() bool { return len(readers.Taken()["/harbour"]) == 2 })
		s.Stop()
		if got := readers.Taken()["/harbour"]; got[0] != pending || !strings.HasPrefix(got[1], "rpt_harbour_20") {
			t.Errorf("taken are %v", got)
		}
		if out := harness.Docent(t, append([]string{"webhook", "list", "--data", r.data, "--json"}, r.flags...)...); !strings.Contains(out, "report.weekly") {
			t.Errorf("webhooks are %s", out)
		}
		harness.Docent(t, append([]string{"catalog", "check", "--data", r.data}, r.flags...)...)
		harness.Docent(t, append([]string{"journal", "check", "--data", r.data}, r.flags...)...)
	})
}

// TestAFailedMigrationChangesNothing has the catalog's migration fail at its last steps: the catalog is as it was, the
// version before may go on, and so may this one when the obstacle is gone.
func TestAFailedMigrationChangesNothing(t *testing.T) {
	eachReleased(t, func(t *testing.T, r *released) {
		const obstacle = "sessions_links" // the name of an index that a late migration makes
		was, err := datadir.ReadFormat(r.data)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.db.ExecContext(t.Context(), "CREATE TABLE "+obstacle+" (x TEXT)"); err != nil {
			t.Fatal(err)
		}
		before := r.contents(t)
		out, err := harness.TryDocent(t, append([]string{"project", "list", "--data", r.data}, r.flags...)...)
		if err == nil || !strings.Contains(err.Error(), "migrate") || !strings.Contains(err.Error(), obstacle) {
			t.Fatalf("%s, %v", out, err)
		}
		if after := r.contents(t); !maps.Equal(before, after) {
			t.Errorf("the catalog was\n%v\nand is\n%v", before, after)
		}
		if w, err := datadir.ReadFormat(r.data); err != nil || w != was {
			t.Errorf("the directory says of itself %+v, %v", w, err)
		}
		if _, err := r.db.ExecContext(t.Context(), "DROP TABLE "+obstacle); err != nil {
			t.Fatal(err)
		}
		if out := harness.Docent(t, append([]string{"project", "list", "--data", r.data}, r.flags...)...); !strings.Contains(out, "harbour") {
			t.Error(out)
		}
	})
}

// TestDataOfANewerVersionIsRefusedUntouched has every command that works on a data directory refuse one of a higher format,
// say what to do, and leave each byte as it is.
func TestDataOfANewerVersionIsRefusedUntouched(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	server := harness.NewServer(t, data)
	harness.NewProject(t, data, "harbour", harness.WriteFiles(t, harness.Harbour))
	server.Stop()
	copied := filepath.Join(t.TempDir(), "copy")
	harness.Docent(t, "backup", copied, "--data", data)
	for _, dir := range []string{data, copied} {
		if w, err := datadir.ReadFormat(dir); err != nil || w.Format != datadir.Format {
			t.Fatalf("%+v, %v", w, err)
		}
		newer := fmt.Sprintf(`{"format":%d,"version":"v9.8.7"}`, datadir.Format+1)
		if err := os.WriteFile(filepath.Join(dir, "format.json"), []byte(newer), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := hashes(t, data)
	for _, args := range [][]string{{"serve", "--listen", "127.0.0.1:0"}, {"project", "list"}, {"key", "list", "--project", "harbour"},
		{"journal", "check"}, {"journal", "compact"}, {"catalog", "rebuild"}, {"backup", filepath.Join(t.TempDir(), "b")}} {
		_, err := harness.TryDocent(t, append(args, "--data", data)...)
		if err == nil || !strings.Contains(err.Error(), "v9.8.7") || !strings.Contains(err.Error(), "backup") {
			t.Errorf("docent %s: %v", strings.Join(args, " "), err)
		}
		if after := hashes(t, data); !maps.Equal(before, after) {
			t.Fatalf("docent %s changed the directory:\n%v\n%v", strings.Join(args, " "), before, after)
		}
	}
	if _, err := harness.TryDocent(t, "serve", "--listen", "127.0.0.1:0", "--data", copied); err == nil || !strings.Contains(err.Error(), "v9.8.7") {
		t.Errorf("a restored backup of a newer version: %v", err)
	}
}

// hashes are those of all files below a folder, with their times. A lock names who took it last, and is left out.
func hashes(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "lock" || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			all[path] = fmt.Sprintf("%x %s", sha256.Sum256(text), info.ModTime().Format(time.RFC3339Nano))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
