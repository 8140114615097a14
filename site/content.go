package site

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"docent/internal/glob"
	"docent/site/script"
)

// Configurations of content: which files the collections of Astro and Fumadocs take in.

// programs are the endings of a configuration in JavaScript or TypeScript.
var programs = []string{".ts", ".mts", ".js", ".mjs"}

// exportsOf reads what the first of these files exports that there is; its name is empty if there is none.
func exportsOf(read func(string) ([]byte, error), stems ...string) (file string, out map[string]any) {
	for _, stem := range stems {
		for _, ext := range programs {
			if raw, err := read(stem + ext); err == nil && len(raw) > 0 {
				return stem + ext, script.Exports(stem+ext, string(raw), read)
			}
		}
	}
	return "", nil
}

// readAstro reads which files the collection docs takes in. src is Astro's source folder, from the documentation
// folder.
func (s *Site) readAstro(src string, read func(string) ([]byte, error)) {
	file, exports := exportsOf(read, path.Join(src, "content.config"), path.Join(src, "content/config"))
	if file == "" {
		return
	}
	collections, ok := exports["collections"].(map[string]any)
	if !ok || !script.Known(collections, "docs") {
		s.unknown(file, "the collections are computed")
		return
	}
	docs, ok := collections["docs"].(map[string]any)
	switch {
	case collections["docs"] == nil:
		return // as Starlight has it by itself
	case !ok || !script.Known(docs, "loader"):
		s.unknown(file, "the collection docs is computed")
		return
	case docs["loader"] == nil:
		return
	}
	loader, ok := docs["loader"].(script.Call)
	options := map[string]any{}
	if ok && len(loader.Arguments) > 0 {
		options, ok = loader.Arguments[0].(map[string]any)
	}
	if _, plain := options["base"].(string); !ok || loader.Name != "docsLoader" && loader.Name != "glob" ||
		!script.Known(options, "pattern") || !script.Known(options, "base") || options["base"] != nil && !plain {
		s.unknown(file, "the loader of the collection docs is computed")
		return
	}
	if base := text(options["base"]); base != "" {
		s.content = path.Join(s.folder(), base)
	}
	if of := options["pattern"]; of != nil {
		s.loading = file
		s.loaded, s.globs = s.takes(file, "pattern", of)
	}
}

// takes are the globs of a list that takes files in, and of those in it that leave some out.
func (s *Site) takes(file, key string, v any) (in, out []glob.Glob) {
	list, whole := strs(v)
	if !whole {
		s.unknown(file, "%s is computed", key)
	}
	var left []string
	list = slices.DeleteFunc(slices.Clone(list), func(text string) bool {
		rest, negated := strings.CutPrefix(text, "!")
		if negated && !strings.HasPrefix(rest, "(") {
			left = append(left, rest)
		}
		return negated && !strings.HasPrefix(rest, "(")
	})
	if in = s.globList(file, key, anys(list)); in == nil {
		in = []glob.Glob{}
	}
	return in, s.globList(file, key, anys(left))
}

func anys(list []string) any {
	out := make([]any, len(list))
	for i, text := range list {
		out[i] = text
	}
	return out
}

// A collection is a folder of Fumadocs with the files in it that are pages.
type collection struct {
	folder  string      // relative to the repository's root
	in, out []glob.Glob // of the files that it takes; in is nil for all
	file    string      // that says so
	name    string      // by which loaders know it
	base    string      // of its addresses
	based   bool        // base is known
}

// readFumadocs reads which files Fumadocs makes pages of.
func (s *Site) readFumadocs(read func(string) ([]byte, error)) {
	root := path.Dir(s.config)
	file, exports := exportsOf(read, path.Join(root, "source.config"))
	for name, v := range exports {
		of, ok := v.(map[string]any)
		if !ok {
			continue // plug-ins and schemas as well
		}
		dir, known := of["dir"].(string)
		docs := of
		if m, ok := of["docs"].(map[string]any); ok {
			docs = m
		}
		if of["dir"] != nil && !known || !script.Known(of, "dir") || !script.Known(of, "docs") ||
			!script.Known(docs, "files") {
			s.unknown(file, "a collection is computed")
			continue
		}
		c := collection{folder: path.Join(s.docsDir, root, cmp.Or(dir, "content/docs")), file: file, name: name}
		if docs["files"] != nil {
			c.in, c.out = s.takes(file, "files", docs["files"])
		}
		s.dirs = append(s.dirs, c)
	}
}

// leftOutOf says why a collection of Fumadocs does not take a file in; ok is false if none leaves it out.
func (d *decider) leftOutOf(p string) (why Decision, ok bool) {
	full := path.Join(d.docsDir, p)
	for _, c := range d.dirs {
		rel, below := strings.CutPrefix(full, c.folder+"/")
		if !below {
			continue
		}
		for _, g := range c.out {
			if g.Match(rel) {
				return Decision{LeftOut, "files: !" + g.Text, d.file(c.file)}, true
			}
		}
		if c.in != nil && !glob.Any(c.in, rel) {
			return Decision{LeftOut, fmt.Sprintf("no pattern of files in %s matches", c.file), d.file(c.file)}, true
		}
	}
	return Decision{}, false
}
