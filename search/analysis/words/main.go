// Command words makes search/analysis/english.txt, which says how common words are in technical English: in what share
// of the sections of public documentation each stands. It reads the repositories of repositories.txt at their commits:
//
//	go run ./search/analysis/words > search/analysis/english.txt
//
// With -from FOLDER it takes them from clones there, each named as in the address (owner+name).
package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"docent/search/analysis"
)

//go:embed repositories.txt
var repositories string

// A word is in the table if so many projects use it: what fewer use are their own names.
const projectsOfAWord = 3

var (
	notText = regexp.MustCompile("(?s)^---\n.*?\n---\n|```.*?```|<!--.*?-->|<[^>\n]*>|\\]\\([^)]*\\)|\\{[^}\n]*\\}")
	heading = regexp.MustCompile(`(?m)^#{1,6} `)
	plain   = regexp.MustCompile(`^[a-z]{2,24}$`)
)

func main() {
	from := flag.String("from", "", "folder of clones")
	flag.Parse()
	if err := run(*from); err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(1)
	}
}

func run(from string) error {
	shares, projects := map[string]float64{}, 0
	in := map[string]int{}
	for line := range strings.Lines(repositories) {
		fields := strings.Fields(line)
		name := strings.ReplaceAll(strings.TrimPrefix(fields[0], "https://github.com/"), "/", "+")
		clone := filepath.Join(from, name, "repo")
		if from == "" {
			folder, err := os.MkdirTemp("", "words")
			if err != nil {
				return err
			}
			defer os.RemoveAll(folder)
			clone = folder
			if err := exec.Command("git", "clone", "--quiet", "--bare", fields[0], clone).Run(); err != nil {
				return fmt.Errorf("clone %s: %w", fields[0], err)
			}
		}
		counts, sections, err := count(clone, fields[1])
		if err != nil {
			return fmt.Errorf("read %s: %w", fields[0], err)
		}
		projects++
		for w, n := range counts {
			in[w]++
			shares[w] += float64(n) / float64(sections)
		}
		fmt.Fprintf(os.Stderr, "%s: %d sections, %d words\n", name, sections, len(counts))
	}
	var words []string
	for w := range shares {
		if in[w] >= projectsOfAWord && plain.MatchString(w) {
			words = append(words, w)
		}
	}
	slices.Sort(words)
	out := bufio.NewWriter(os.Stdout)
	for _, w := range words { // in tenths of powers of ten: 0 is every section, 20 one in a hundred
		share := shares[w] / float64(projects)
		fmt.Fprintf(out, "%s %d\n", w, min(99, int(math.Round(-10*math.Log10(share)))))
	}
	return out.Flush()
}

// count says in how many sections of a repository's Markdown each stem stands.
func count(clone, commit string) (counts map[string]int, sections int, err error) {
	list, err := exec.Command("git", "-C", clone, "ls-tree", "-r", "--name-only", "-z", commit).Output()
	if err != nil {
		return nil, 0, err
	}
	counts = map[string]int{}
	a := analysis.Get()
	defer a.Put()
	for name := range strings.SplitSeq(string(list), "\x00") {
		if ext := path.Ext(name); ext != ".md" && ext != ".mdx" {
			continue
		}
		text, err := exec.Command("git", "-C", clone, "show", commit+":"+name).Output()
		if err != nil {
			continue // too large for the copy
		}
		text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
		for _, section := range heading.Split(string(notText.ReplaceAll(text, []byte(" "))), -1) {
			if len(section) < 40 {
				continue
			}
			sections++
			seen := map[string]bool{}
			a.Tokens(section, "en", func(t analysis.Token) {
				if t.Covers == 0 && !seen[t.Term] {
					seen[t.Term] = true
					counts[strings.Clone(t.Term)]++
				}
			})
		}
	}
	return counts, sections, nil
}
