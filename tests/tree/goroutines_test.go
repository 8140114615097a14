package tree

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// startsGoroutines is the one package with go statements.
const startsGoroutines = "docent/internal/background"

// A goroutine that panics ends the server unless it recovers itself, so every one is started by internal/background.
// Callbacks of timers and contexts are not looked at: they only send, cancel or close.
func TestGoroutinesAreStartedWhereAPanicIsRecovered(t *testing.T) {
	t.Parallel()
	for pkg, file := range sourceFiles(t) {
		if pkg == startsGoroutines || strings.HasPrefix(pkg, "docent/tests/") {
			continue
		}
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range bareGoroutines(parsed) {
			t.Errorf("%s: %s: start the goroutine with internal/background, which recovers and names it",
				files.Position(found.at), found.what)
		}
	}
}

// A bareGoroutine is a place that starts a goroutine by itself, or has what does.
type bareGoroutine struct {
	at   token.Pos
	what string
}

func bareGoroutines(file *ast.File) (found []bareGoroutine) {
	for _, imported := range file.Imports {
		if imported.Path.Value == `"golang.org/x/sync/errgroup"` {
			found = append(found, bareGoroutine{imported.Pos(), "errgroup"})
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = append(found, bareGoroutine{n.Pos(), "a go statement"})
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "sync" && n.Sel.Name == "WaitGroup" {
				found = append(found, bareGoroutine{n.Pos(), "sync.WaitGroup"})
			}
		}
		return true
	})
	return found
}

func TestBareGoroutinesAreFound(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`import "golang.org/x/sync/errgroup"; var _ errgroup.Group`,
		`func f() { go f() }`,
		`import "sync"; func f() { var w sync.WaitGroup; w.Go(f) }`,
	} {
		parsed, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x; "+text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if len(bareGoroutines(parsed)) != 1 {
			t.Errorf("%d places were found in %s", len(bareGoroutines(parsed)), text)
		}
	}
}
