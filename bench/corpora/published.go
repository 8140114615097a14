package corpora

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A published set is the documentation that a Go module or an npm package carries, at one version.
type published struct {
	module string // of Go
	npm    string
	folder string   // in it
	only   []string // folders of that folder; all where none is named
	half   string   // "dev": weights are chosen on it; "held": they are only looked at; "people": the same, with questions that others asked
	small  bool     // CI loads it
}

var publishedSets = map[string]published{
	"ai":       {npm: "ai@6.0.326", folder: "docs", half: "dev", small: true},
	"argo-cd":  {module: "github.com/argoproj/argo-cd/v2@v2.14.21", folder: "docs", half: "held"},
	"fastify":  {npm: "fastify@5.12.8", folder: "docs", half: "dev", small: true},
	"intlayer": {npm: "@intlayer/docs@8.9.6", folder: "docs/en", half: "held"},
	"loki":     {module: "github.com/grafana/loki/v3@v3.7.8", folder: "docs/sources", half: "dev"},
	"mastra":   {npm: "@mastra/mcp-docs-server@0.13.31", folder: ".docs/raw", half: "held", small: true},
	"opa":      {module: "github.com/open-policy-agent/opa@v1.22.2", folder: "docs/docs", half: "dev"},
	"rclone":   {module: "github.com/rclone/rclone@v1.76.0", folder: "docs/content", half: "held"},
	"thanos":   {module: "github.com/thanos-io/thanos@v0.40.1", folder: "docs", half: "dev"},
	"undici":   {npm: "undici@7.30.2", folder: "docs/docs", half: "held", small: true},
	// Questions about these are titles and first sentences of public issues; their pages were fixed before any was ranked.
	"contour":      {module: "github.com/projectcontour/contour@v1.33.8", folder: "site/content/docs/main", half: "people"},
	"cortex":       {module: "github.com/cortexproject/cortex@v1.21.1", folder: "docs", half: "people"},
	"external-dns": {module: "sigs.k8s.io/external-dns@v0.15.0", folder: "docs", half: "people"},
	"oauth2-proxy": {module: "github.com/oauth2-proxy/oauth2-proxy/v7@v7.15.6", folder: "docs/docs", half: "people"},
	"telegraf":     {module: "github.com/influxdata/telegraf@v1.37.2", folder: "docs", half: "people"},
	"trivy":        {module: "github.com/aquasecurity/trivy@v0.74.0", folder: "docs", half: "people"},
	// The same pages in four languages.
	"intlayer-cjk": {npm: "@intlayer/docs@8.9.6", folder: "docs", only: []string{"en", "ja", "ko", "zh"}},
}

// PublishedNames lists the sets of one half, those that CI loads alone where small is asked for.
func PublishedNames(half string, small bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(publishedSets)), func(name string) bool {
		s := publishedSets[name]
		return s.half != half || small && !s.small
	})
}

// Published is a documentation set that a registry keeps. Where it is not on this machine it is loaded, if fetch says
// so, else the test is skipped.
func Published(tb testing.TB, name string, fetch bool) Tree {
	tb.Helper()
	set, ok := publishedSets[name]
	if !ok {
		tb.Fatalf("no documentation set is called %q", name)
	}
	tree := Tree{}
	if set.npm != "" {
		for file, body := range archive(tb, packed(tb, set.npm, fetch)) {
			if file, ok := strings.CutPrefix(file, "package/"+set.folder+"/"); ok && isPage(file) {
				tree[file] = body
			}
		}
	} else {
		pages := os.DirFS(filepath.Join(module(tb, set.module, fetch), filepath.FromSlash(set.folder)))
		err := fs.WalkDir(pages, ".", func(file string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && isPage(file) {
				tree[file], err = fs.ReadFile(pages, file)
			}
			return err
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	maps.DeleteFunc(tree, func(file string, _ []byte) bool {
		first, _, _ := strings.Cut(file, "/")
		return len(set.only) > 0 && !slices.Contains(set.only, first)
	})
	return tree
}

func isPage(file string) bool {
	ext := path.Ext(file)
	return ext == ".md" || ext == ".mdx" || ext == ".json" && path.Base(file) != "package.json"
}

// module is the folder of a Go module in the module cache.
func module(tb testing.TB, name string, fetch bool) string {
	tb.Helper()
	load := exec.CommandContext(tb.Context(), "go", "mod", "download", "-json", name)
	load.Dir, load.Env = tb.TempDir(), append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	if !fetch {
		load.Env = append(load.Env, "GOPROXY=off")
	}
	out, err := load.Output()
	var got struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &got); jsonErr != nil || err != nil || got.Dir == "" {
		if fetch {
			tb.Fatalf("load %s: %v %v %s", name, err, jsonErr, got.Error)
		}
		tb.Skipf("%s is not on this machine: -fetch loads it", name)
	}
	return got.Dir
}

// packed is the archive of an npm package, kept in the user's cache folder.
func packed(tb testing.TB, name string, fetch bool) string {
	tb.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		tb.Skipf("no cache folder: %v", err)
	}
	dir := filepath.Join(cache, "docent-judged")
	file := filepath.Join(dir, strings.NewReplacer("@", "-", "/", "-").Replace(strings.TrimPrefix(name, "@"))+".tgz")
	if _, err := os.Stat(file); err == nil {
		return file
	}
	if !fetch {
		tb.Skipf("%s is not on this machine: -fetch loads it", name)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		tb.Fatal(err)
	}
	into := tb.TempDir()
	load := exec.CommandContext(tb.Context(), "npm", "pack", "--silent", "--pack-destination", into, name)
	out, err := load.Output()
	if err != nil {
		tb.Fatalf("npm pack %s: %v", name, err)
	}
	body, err := os.ReadFile(filepath.Join(into, strings.TrimSpace(string(out))))
	if err == nil {
		err = os.WriteFile(file+".part", body, 0o644)
	}
	if err == nil {
		err = os.Rename(file+".part", file)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return file
}
