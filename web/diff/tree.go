package diff

import (
	"cmp"
	"slices"
	"strings"
)

// A Node of the tree of changed files: a folder with what is in it, or a file.
type Node struct {
	Name  string // a folder that holds nothing but another one is shown with it: guides/setup
	Path  string
	File  int // which of the paths it is; -1 for a folder
	Below []*Node
}

// maxDepth is how far a tree is nested; what lies deeper is shown with its whole name.
const maxDepth = 12

// Tree arranges paths by their folders: folders first, each level in the order of its names.
func Tree(paths []string) []*Node {
	root := &Node{File: -1}
	folders := map[*Node]map[string]*Node{root: {}}
	for i, path := range paths {
		at, rest := root, path
		for range maxDepth {
			name, below, more := strings.Cut(rest, "/")
			if !more {
				break
			}
			next := folders[at][name]
			if next == nil {
				next = &Node{Name: name, Path: path[:len(path)-len(below)-1], File: -1}
				folders[at][name], folders[next] = next, map[string]*Node{}
				at.Below = append(at.Below, next)
			}
			at, rest = next, below
		}
		at.Below = append(at.Below, &Node{Name: rest, Path: path, File: i})
	}
	root.tidy()
	return root.Below
}

// tidy sorts what is below a folder, and joins folders that hold nothing but one folder.
func (n *Node) tidy() {
	for _, b := range n.Below {
		for b.File < 0 && len(b.Below) == 1 && b.Below[0].File < 0 {
			only := b.Below[0]
			b.Name, b.Path, b.Below = b.Name+"/"+only.Name, only.Path, only.Below
		}
		b.tidy()
	}
	slices.SortStableFunc(n.Below, func(a, b *Node) int {
		if (a.File < 0) != (b.File < 0) {
			return cmp.Compare(min(a.File, 0), min(b.File, 0))
		}
		return strings.Compare(a.Name, b.Name)
	})
}
