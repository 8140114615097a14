package tree

import (
	"fmt"
	"iter"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// everything is all packages, by the module's path.
const everything = "docent/..."

// A folder is one of those at the top, as the program is made of them.
type folder struct {
	name string
	open string // the packages below it that other folders may import, beside the one of its own name; * for all
	may  string // the folders that it may import
}

// mayImport is the plan in docs/ARCHITECTURE.md: every folder, lowest first. A folder imports only those that stand above
// its line. Folders exchange data types and constructors; services with outside effects come in through the interfaces that
// the importing package declares in ports.go. Inside a folder Go itself refuses cycles.
//
// cmd wires the packages of all folders and tests tries them, so open names only what the others share.
var mayImport = []folder{
	{"docs", "", ""},
	{"deploy", "", ""},
	{"internal", "*", ""},
	{"api", "client openapi stream", "internal"},
	{"bench", "", "api docs internal"},
	{"persistence", "catalog catalog/insights catalog/listing catalog/nodes cluster datadir journal quota secrets", "api internal"},
	{"site", "expand links markup published script sidebar", "api internal"},
	{"agent", "affected", "api internal site"},
	{"forge", "failure host", "api internal persistence"},
	{"search", "analysis sources sources/crawl", "api forge internal persistence site"},
	{"scripts", "", ""},
	{"model", "builtin questions rewrite", "api internal search site"},
	{"actors", "gaps gaps/topics job job/startjob pulls/review reports thread",
		"agent api forge internal model persistence search"},
	{"router", "oauth widget", "actors api forge internal model persistence search"},
	{"web", "", "actors api docs forge internal model persistence router search site"},
	{"cmd", "", "actors agent api bench deploy docs forge internal model persistence router search site web"},
	{"tests", "", "actors api bench cmd internal model persistence search"},
}

// parses lists the packages that may call a parser that recurses with its input: docent/internal/formats, which bounds the depth,
// and those that read what the operator or Docent itself wrote.
var parses = []string{"docent/internal/formats", "docent/cmd/docent/config", "docent/cmd/docent/evalcmd", "docent/api/openapi"}

var parseCall = regexp.MustCompile(
	`\b(?:hujson|yaml|toml)\.(?:Parse|Standardize|Minimize|Format|Unmarshal|Load|NewDecoder|NewLoader)\(`)

// sourceFiles yields the package and the path of each file of code that is no test.
func sourceFiles(t *testing.T) iter.Seq2[string, string] {
	t.Helper()
	out, err := exec.Command("go", "list", "-f",
		`{{$p := .}}{{range .GoFiles}}{{$p.ImportPath}}:{{$p.Dir}}/{{.}}{{"\n"}}{{end}}`, everything).Output()
	if err != nil {
		t.Fatalf("list the files: %v", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) < 100 {
		t.Errorf("only %d files were found", len(lines))
	}
	return func(yield func(string, string) bool) {
		for _, line := range lines {
			if pkg, file, ok := strings.Cut(line, ":"); ok && !yield(pkg, file) {
				return
			}
		}
	}
}

func TestRepositoryFilesAreParsedWithinADepth(t *testing.T) {
	t.Parallel()
	for pkg, file := range sourceFiles(t) {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(parses, pkg) {
			continue
		}
		if call := parseCall.Find(src); call != nil {
			t.Errorf("%s calls %s…): read files of repositories with docent/internal/formats", file, call)
		}
	}
}

func TestEveryFolderImportsOnlyWhatItsLineNames(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-f", `{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}}{{"\n"}}{{end}}`,
		everything).Output()
	if err != nil {
		t.Fatalf("list the imports: %v", err)
	}
	lines, below := map[string]folder{}, map[string]string{}
	for _, f := range mayImport {
		for may := range strings.FieldsSeq(f.may) {
			if _, found := lines[may]; !found {
				t.Errorf("%s may import %s, whose line does not stand above its own: imports go down only", f.name, may)
			}
		}
		lines[f.name], below[f.name] = f, " "+f.may+" "
	}
	unused := map[string]string{} // what a line names, until it is found
	for name, f := range lines {
		for may := range strings.FieldsSeq(f.may) {
			unused[name+" > "+may] = fmt.Sprintf("%s may import %s and does not", name, may)
		}
		for open := range strings.FieldsSeq(strings.Trim(f.open, "*")) {
			unused[name+"/"+open] = fmt.Sprintf("%s/%s is open, and only cmd, tests or nobody imports it", name, open)
		}
	}
	for line := range strings.Lines(string(out)) {
		from, to, _ := strings.Cut(strings.TrimSpace(line), " ")
		from, to = strings.TrimPrefix(from, strings.TrimSuffix(everything, "...")), strings.TrimPrefix(to, strings.TrimSuffix(everything, "..."))
		importer, _, _ := strings.Cut(from, "/")
		imported, inside, _ := strings.Cut(to, "/")
		if lines[importer].name == "" {
			t.Errorf("%s has no line: give the folder one in mayImport and in docs/ARCHITECTURE.md", importer)
		}
		if !strings.Contains(line, " docent/") || imported == importer {
			continue
		}
		delete(unused, importer+" > "+imported)
		if !strings.Contains(below[importer], " "+imported+" ") {
			t.Errorf("%[1]s imports %[2]s, and %[3]s may not import %[4]s: declare the interface that it needs in ports.go and "+
				"let cmd/docent bring what implements it; if %[4]s belongs below %[3]s, add it to the line of %[3]s in mayImport",
				from, to, importer, imported)
		}
		if importer == "cmd" || importer == "tests" || inside == "" || lines[imported].open == "*" {
			continue
		}
		delete(unused, to)
		if !slices.Contains(strings.Fields(lines[imported].open), inside) {
			t.Errorf("%s imports %s, which %s keeps to itself: take it from docent/%s, or name %q among the open packages of %s in "+
				"mayImport", from, to, imported, imported, inside, imported)
		}
	}
	for _, said := range unused {
		t.Errorf("%s: take it out of its line in mayImport", said)
	}
}
