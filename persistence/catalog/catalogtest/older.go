package catalogtest

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"docent/persistence/catalog"
	"docent/persistence/catalog/database"
)

// Undo are statements that take from older tables what the migrations after that one brought to them.
func Undo(t *testing.T, migration string) (statements []string) {
	t.Helper()
	older := map[string]string{}   // indexes that were there before
	created := map[string]string{} // and tables
	tables := TablesAfter(t, migration)
	find := func(text, what string) [][]string { return regexp.MustCompile(what).FindAllStringSubmatch(text, -1) }
	for _, name := range Must(fs.Glob(database.Migrations, "migrations/*.sql"))(t) {
		text := string(Must(database.Migrations.ReadFile(name))(t))
		if path.Base(name) < migration+"~" {
			for _, m := range find(text, `(?m)^CREATE (?:UNIQUE )?INDEX (\w+) ON .*$`) {
				older[m[1]] = m[0]
			}
			for _, m := range find(text, `(?ms)^CREATE TABLE (\w+) \(.*?^\)`) {
				created[m[1]] = strings.NewReplacer("{{.Text}}", "TEXT", "{{.JSON}}", "TEXT", "{{.Int}}", "BIGINT").Replace(m[0])
			}
			continue
		}
		for _, m := range find(text, `CREATE (?:UNIQUE )?INDEX (\w+) ON (\w+)`) {
			if !slices.Contains(tables, m[2]) {
				statements = append(statements, "DROP INDEX IF EXISTS "+m[1])
			}
		}
		for _, m := range find(text, `(?m)^DROP INDEX (\w+)`) {
			if older[m[1]] != "" {
				statements = append(statements, "DROP INDEX IF EXISTS "+m[1], older[m[1]])
			}
		}
	}
	for _, name := range Must(fs.Glob(database.Migrations, "migrations/*.sql"))(t) {
		if path.Base(name) < migration+"~" {
			continue
		}
		for _, m := range find(string(Must(database.Migrations.ReadFile(name))(t)), `DROP TABLE (\w+)`) {
			if created[m[1]] != "" {
				statements = append(statements, created[m[1]])
			}
		}
		for _, m := range find(string(Must(database.Migrations.ReadFile(name))(t)), `ALTER TABLE (\w+) ADD COLUMN (\w+)`) {
			statements = append(statements, "ALTER TABLE "+m[1]+" DROP COLUMN "+m[2])
		}
	}
	return statements
}

// TablesAfter are the tables that the migrations after that one make and keep.
func TablesAfter(t *testing.T, migration string) (tables []string) {
	t.Helper()
	files := Must(fs.Glob(database.Migrations, "migrations/*.sql"))(t)
	for _, name := range files {
		if path.Base(name) < migration+"~" {
			continue
		}
		text := Must(database.Migrations.ReadFile(name))(t)
		for _, part := range strings.Split(string(text), "CREATE TABLE ")[1:] {
			tables = append(tables, strings.Fields(part)[0])
		}
		for _, part := range strings.Split(string(text), "DROP TABLE ")[1:] {
			tables = slices.DeleteFunc(tables, func(name string) bool { return name == strings.Fields(part)[0] })
		}
	}
	return tables
}

// BackTo takes from a catalog what the migrations after that one brought, and opens it again.
func (p Place) BackTo(t *testing.T, c *catalog.Catalog, migration string) *catalog.Catalog {
	t.Helper()
	TakeBack(t, c, migration)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return p.Open(catalog.Options{})
}

// TakeBack takes from a catalog what the migrations after that one brought.
func TakeBack(t *testing.T, c *catalog.Catalog, migration string) {
	t.Helper()
	statements := append(Undo(t, migration), "DELETE FROM bun_migrations WHERE name > '"+migration+"'")
	for _, table := range slices.Backward(TablesAfter(t, migration)) {
		statements = append(statements, "DROP TABLE "+table)
	}
	for _, s := range statements {
		if _, err := c.Write.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
}
