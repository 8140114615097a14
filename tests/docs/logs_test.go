package docs

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"docent/api/client"
	"docent/tests/harness"
)

// documentedFields are the fields that docs/operate/logs.mdx names.
func documentedFields(t testing.TB) map[string]bool {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "operate", "logs.mdx"))
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[a-z_`, ]+`) \\|").FindAllStringSubmatch(string(page), -1) {
		for _, name := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(row[1], -1) {
			if fields[name[1]] {
				t.Errorf("docs/operate/logs.mdx names %s twice", name[1])
			}
			fields[name[1]] = true
		}
	}
	return fields
}

// loggedFields are the fields that a call writes whose names stand in it.
func loggedFields(call *ast.CallExpr) (names []string) {
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	literal := func(args []ast.Expr, from, step int) {
		for i := from; i < len(args); i += step {
			if l, ok := args[i].(*ast.BasicLit); ok && l.Kind == token.STRING {
				if name, err := strconv.Unquote(l.Value); err == nil {
					names = append(names, name)
				}
			}
		}
	}
	of := ""
	switch x := fun.X.(type) {
	case *ast.Ident:
		of = x.Name
	case *ast.SelectorExpr:
		of = x.Sel.Name
	}
	switch fun.Sel.Name {
	case "Debug", "Info", "Warn", "Error":
		if strings.EqualFold(of, "log") {
			literal(call.Args, 1, 2)
		}
	case "DebugContext", "InfoContext", "WarnContext", "ErrorContext":
		if strings.EqualFold(of, "log") {
			literal(call.Args, 2, 2)
		}
	case "With":
		if strings.EqualFold(of, "log") {
			literal(call.Args, 0, 2)
		}
	case "String", "Int", "Int64", "Uint64", "Float64", "Bool", "Time", "Duration", "Any":
		if of == "slog" {
			literal(call.Args, 0, len(call.Args))
		}
	}
	return names
}

// Each field that a line of the log may have is documented, and each that is documented is one that a line may have.
func TestEveryFieldOfTheLogIsDocumented(t *testing.T) {
	t.Parallel()
	documented := documentedFields(t)
	root := filepath.Join("..", "..")
	used := map[string]string{"time": "slog", "level": "slog", "msg": "slog"}
	set := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case path != root && errors.Is(err, fs.ErrNotExist): // what tests beside this one build comes and goes
			return nil
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "testdata"):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				for _, name := range loggedFields(call) {
					used[name] = set.Position(call.Pos()).String()
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// Names that no call has as it stands: of actors' kinds, and of a list that several calls share.
	for _, name := range []string{"job", "thread", "kind", "event", "problem", "code", "attempt", "status", "given_up", "how"} {
		used[name] = "a variable"
	}
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if !documented[name] {
			t.Errorf("%s: docs/operate/logs.mdx does not name the field %q", used[name], name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(documented)) {
		if used[name] == "" {
			t.Errorf("docs/operate/logs.mdx names %q, which no line has", name)
		}
	}
	if len(used) < 80 {
		t.Errorf("only %d fields were found", len(used))
	}
}

// What a server writes in JSON over its main actions: whole objects, levels and fields as documented, durations in
// seconds, and nothing of what readers and writers said, nor a key.
func TestTheLogOfAServerIsAsDocumented(t *testing.T) {
	t.Parallel()
	const marker = "zanzibar7341"
	data := filepath.Join(t.TempDir(), "data")
	p := harness.NewProject(t, data, "harbour", harness.WriteFiles(t, harness.Harbour), harness.Unlimited...)
	server := harness.NewServer(t, data, "--log-format", "json")
	reader, admin := server.Client(p.Assistant), server.Client(p.Admin)
	first, err := harness.Ask(t.Context(), reader, p, "", "What do tickets cost? "+marker)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = harness.Ask(t.Context(), server.Client(marker), p, "", "Who am I? "+marker)
	_, _ = harness.Ask(t.Context(), reader, p, string(first.Thread), "And on Sundays, "+marker+"?")
	made, err := admin.CreateJob(t.Context(), p.ID, client.CreateJob{
		Prompt: `Replace "four coins" with "` + marker + `" on all pages.`})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.WaitForJob(t.Context(), p.ID, string(made.ID)); err != nil {
		t.Fatal(err)
	}
	for path, body := range map[string]string{"/v1/search/" + p.Domain: `{"query":"` + marker + `"}`,
		"/nowhere/" + marker: "{}", "/v1/feedback/" + p.Domain: `{"comment":"` + marker + `"}`} {
		if resp, err := reader.Do(t.Context(), "POST", path, json.RawMessage(body)); err == nil {
			resp.Body.Close()
		}
	}
	server.Stop()
	fields, messages := documentedFields(t), map[string]bool{}
	for line := range strings.Lines(server.Log.String()) {
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Errorf("a line is no object: %v: %s", err, line)
			continue
		}
		messages[fmt.Sprint(record["msg"])] = true
		if level := fmt.Sprint(record["level"]); level != "INFO" && level != "WARN" && level != "ERROR" {
			t.Errorf("the level %q: %s", level, line)
		}
		for name := range record {
			if !fields[name] {
				t.Errorf("docs/operate/logs.mdx does not name %q: %s", name, line)
			}
		}
		if record["msg"] == "request" {
			if took, ok := record["took"].(float64); !ok || took <= 0 || took > 300 {
				t.Errorf("took is %v, no seconds: %s", record["took"], line)
			}
		}
	}
	for _, want := range []string{"serving", "request", "answered", "job", "stopping", "stopped"} {
		if !messages[want] {
			t.Errorf("the log has no %q among %q", want, slices.Sorted(maps.Keys(messages)))
		}
	}
	for _, secret := range []string{marker, p.Admin, p.Assistant} {
		if i := strings.Index(server.Log.String(), secret); i >= 0 {
			t.Errorf("the log has %.12s…: %.300s", secret, server.Log.String()[max(0, i-200):])
		}
	}
}
