package main

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// floors is the plan of the house: a room imports only rooms on floors below its own. What may be imported across
// floors 1 to 5 beyond data types is kept small by ports.go in each room; this test keeps the arrows pointing down.
var floors = map[string]int{
	"docent/formats": -1, // what markup reads front matter with
	"docent/api":     0, "docent/stream": 0, "docent/markup": 0, "docent/docs": 0,
	"docent/router/openapi": 0, // the document alone
	"docent/site":           1,
	"docent/search":         2, "docent/model": 2, "docent/forge": 2, "docent/persistence": 2, "docent/agent": 2,
	"docent/router/overload": 2, // who is let in
	"docent/forge/forgetest": 3, // what every code host is tested with
	"docent/model/modeltest": 3, // plays the providers of language models
	"docent/actors/job":      3, "docent/actors/thread": 3,
	"docent/actors": 4,
	"docent/router": 5, "docent/bench": 5,
	"docent/cmd/docent": 6,
}

// only lists rooms that may import less than their floor allows.
var only = map[string][]string{
	"docent/api": {}, "docent/docs": {},
	"docent/site":   {"docent/api", "docent/formats", "docent/markup"},
	"docent/actors": {"docent/actors/job", "docent/actors/thread", "docent/api", "docent/persistence"},
}

// parses lists the rooms that may call a parser that recurses with its input: docent/formats, which bounds the depth, and
// those that read what the operator or Docent itself wrote.
var parses = []string{"docent/formats", "docent/cmd/docent", "docent/router/openapi"}

var parseCall = regexp.MustCompile(`\b(?:hujson|yaml|toml)\.(?:Parse|Standardize|Minimize|Format|Unmarshal|Load|NewDecoder|NewLoader)\(`)

func TestRepositoryFilesAreParsedWithinADepth(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-f", `{{$p := .}}{{range .GoFiles}}{{$p.ImportPath}}:{{$p.Dir}}/{{.}}{{"\n"}}{{end}}`, "docent/...").Output()
	if err != nil {
		t.Fatalf("list the files: %v", err)
	}
	seen := 0
	for line := range strings.Lines(string(out)) {
		room, file, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		seen++
		if slices.Contains(parses, room) {
			continue
		}
		if call := parseCall.Find(src); call != nil {
			t.Errorf("%s calls %s…): read files of repositories with docent/formats", file, call)
		}
	}
	if seen < 100 {
		t.Errorf("only %d files were looked at", seen)
	}
}

func TestEveryRoomImportsOnlyRoomsBelowIt(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}}:{{join .Imports ","}}`, "docent/...").Output()
	if err != nil {
		t.Fatalf("list the packages: %v", err)
	}
	seen := 0
	for line := range strings.Lines(string(out)) {
		room, list, _ := strings.Cut(strings.TrimSpace(line), ":")
		floor, ok := floors[room]
		if !ok {
			t.Errorf("%s is not in the plan of the house: give it a floor here and in docs/ARCHITECTURE.md", room)
			continue
		}
		seen++
		for imported := range strings.SplitSeq(list, ",") {
			if !strings.HasPrefix(imported, "docent/") {
				continue
			}
			below, ok := floors[imported]
			if !ok || below >= floor {
				t.Errorf("%s (floor %d) imports %s (floor %d)", room, floor, imported, below)
			}
			if allowed, limited := only[room]; limited && !slices.Contains(allowed, imported) {
				t.Errorf("%s imports %s, which is not among %v", room, imported, allowed)
			}
		}
	}
	if seen != len(floors) {
		t.Errorf("%d rooms were found, the plan has %d", seen, len(floors))
	}
}
