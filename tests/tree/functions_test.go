package tree

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The bounds of CONTRIBUTING.md on functions, and that on packages, in lines outside tests.
const (
	mostLines      = 100
	mostComplexity = 25 // cyclomatic, as McCabe counts it: A Complexity Measure, 1976
	mostPackage    = 6000
)

// larger names the functions that may be beyond the bounds, each with its reason.
var larger = map[string]string{
	"agent/rules.init":       "a table: one entry for each form of an instruction",
	"internal/formats.depth": "a state table: what each byte does to the depth",
	"site/script.read":       "a state table: what each byte of a program is, outside and inside of its texts",
}

func TestFunctionsAreOfASizeThatOneReadsAtOnce(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	found, size := map[string]bool{}, map[string]int{}
	seen := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if path != root && errors.Is(err, fs.ErrNotExist) { // what tests beside this one build comes and goes
			return nil
		}
		if err != nil || entry.IsDir() {
			if name := entry.Name(); name == "node_modules" || name == "testdata" || name == "bin" || name == "data" || name == ".git" {
				return fs.SkipDir
			}
			return err
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		files := token.NewFileSet()
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(files, path, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		room, _ := filepath.Rel(root, filepath.Dir(path))
		size[room] += bytes.Count(src, []byte("\n"))
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			seen++
			name := filepath.ToSlash(room) + "." + f.Name.Name
			lines := files.Position(f.End()).Line - files.Position(f.Pos()).Line + 1
			complexity := complexityOf(f)
			if lines <= mostLines && complexity <= mostComplexity {
				continue
			}
			found[name] = true
			if larger[name] == "" {
				t.Errorf("%s: %s has %d lines and a complexity of %d; %d and %d are the bounds: split it along its steps, "+
					"or name the reason here", files.Position(f.Pos()), name, lines, complexity, mostLines, mostComplexity)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for room, lines := range size {
		if lines > mostPackage {
			t.Errorf("%s has %d lines outside tests, and %d is the bound: what it does twice goes, or a part of it moves", room, lines, mostPackage)
		}
	}
	for name := range larger {
		if !found[name] {
			t.Errorf("%s is within the bounds, or gone: take it out of the list", name)
		}
	}
	if seen < 2000 {
		t.Errorf("only %d functions were looked at", seen)
	}
}

// complexityOf is one, and one for each branch. A function literal's branches count for the function that it stands in.
func complexityOf(f *ast.FuncDecl) int {
	n := 1
	ast.Inspect(f, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if node.List != nil {
				n++
			}
		case *ast.CommClause:
			if node.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if node.Op == token.LAND || node.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}
