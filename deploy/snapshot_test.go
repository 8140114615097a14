package deploy_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

// releaseSystems are those that a release is made for.
var releaseSystems = []string{"darwin/amd64", "darwin/arm64", "linux/amd64", "linux/arm64", "windows/amd64", "windows/arm64"}

// An archived file is one of a release's archive.
type archivedFile struct {
	content []byte
	mode    fs.FileMode
	time    time.Time
}

// A releaseArchive is one archive of dist/.
type releaseArchive struct {
	system, version string
	files           map[string]archivedFile // without the folder that they all lie in
	binary          []byte
	info            *debug.BuildInfo
}

var archiveName = regexp.MustCompile(`^docent_(.+)_(linux|darwin|windows)_(amd64|arm64)\.(tar\.gz|zip)$`)

// snapshot reads what scripts/release-snapshot made.
func snapshot(t *testing.T) (dist string, archives []releaseArchive) {
	t.Helper()
	dist = os.Getenv("DOCENT_TEST_DIST")
	if dist == "" {
		t.Skip("scripts/check-release makes a release and runs this test on it")
	}
	entries, err := os.ReadDir(dist)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		parts := archiveName.FindStringSubmatch(e.Name())
		if parts == nil {
			continue
		}
		a := releaseArchive{system: parts[2] + "/" + parts[3], version: parts[1], files: map[string]archivedFile{}}
		folder := strings.TrimSuffix(strings.TrimSuffix(e.Name(), ".zip"), ".tar.gz") + "/"
		read := readTar
		if parts[4] == "zip" {
			read = readZip
		}
		if (parts[2] == "windows") != (parts[4] == "zip") {
			t.Errorf("%s has the wrong kind of archive", e.Name())
		}
		if err := read(filepath.Join(dist, e.Name()), func(name string, f archivedFile) {
			inside, ok := strings.CutPrefix(name, folder)
			if !ok {
				t.Errorf("%s: %s lies outside of %s", e.Name(), name, folder)
			}
			a.files[inside] = f
		}); err != nil {
			t.Fatalf("%s: %v", e.Name(), err)
		}
		name := "docent"
		if parts[2] == "windows" {
			name += ".exe"
		}
		a.binary = a.files[name].content
		if a.info, err = buildinfo.Read(bytes.NewReader(a.binary)); err != nil {
			t.Fatalf("%s: the binary: %v", e.Name(), err)
		}
		archives = append(archives, a)
	}
	var systems []string
	for _, a := range archives {
		systems = append(systems, a.system)
	}
	want := releaseSystems
	if os.Getenv("QUICK") != "" { // see scripts/release-snapshot
		want = []string{"darwin/amd64", "linux/amd64", "windows/amd64"}
	}
	if slices.Sort(systems); !slices.Equal(systems, want) {
		t.Fatalf("there are archives for %v, not for %v", systems, want)
	}
	return dist, archives
}

func readTar(name string, each func(string, archivedFile)) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}
		if h.Uname != "root" || h.Gname != "root" {
			return fmt.Errorf("%s belongs to %s:%s", h.Name, h.Uname, h.Gname)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		each(h.Name, archivedFile{content, h.FileInfo().Mode(), h.ModTime})
	}
}

func readZip(name string, each func(string, archivedFile)) error {
	z, err := zip.OpenReader(name)
	if err != nil {
		return err
	}
	defer z.Close()
	for _, f := range z.File {
		if f.FileInfo().IsDir() {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return err
		}
		content, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil {
			return err
		}
		each(f.Name, archivedFile{content, f.Mode(), f.Modified})
	}
	return nil
}

// headCommit is the commit that dist/ was made from, with its time.
func headCommit(t *testing.T) (id string, date time.Time) {
	t.Helper()
	out, err := exec.Command("git", "log", "-1", "--format=%H %cI").Output()
	if err != nil {
		t.Fatalf("git log: %v", err)
	}
	id, when, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if date, err = time.Parse(time.RFC3339, when); err != nil {
		t.Fatal(err)
	}
	return id, date
}

func TestArchivesOfAReleaseHoldWhatPeopleNeed(t *testing.T) {
	_, archives := snapshot(t)
	_, date := headCommit(t)
	always := []string{"LICENSE", "README.md", "CHANGELOG.md", "THIRD_PARTY_LICENSES.txt", "docent.toml",
		"completions/docent.bash", "completions/docent.zsh", "completions/docent.fish", "completions/docent.ps1"}
	for _, a := range archives {
		want := slices.Clone(always)
		if !strings.HasPrefix(a.system, "windows") {
			want = append(want, "man/man1/docent.1.gz", "man/man1/docent-serve.1.gz", "man/man1/docent-project-add.1.gz")
		}
		for _, name := range want {
			if len(a.files[name].content) == 0 {
				t.Errorf("%s: there is no %s", a.system, name)
			}
		}
		for name, f := range a.files {
			if !f.time.Equal(date) {
				t.Errorf("%s: %s is of %s, not of the commit's %s", a.system, name, f.time, date)
			}
			if executable := f.mode&0o111 != 0; strings.HasPrefix(name, "docent.exe") || name == "docent" {
				if !executable {
					t.Errorf("%s: %s cannot be executed", a.system, name)
				}
			} else if executable {
				t.Errorf("%s: %s can be executed", a.system, name)
			}
		}
		licenses := string(a.files["THIRD_PARTY_LICENSES.txt"].content)
		for _, m := range a.info.Deps {
			if !strings.Contains(licenses, "\n"+m.Path+" "+m.Version+"\n") {
				t.Errorf("%s: there is no license of %s %s", a.system, m.Path, m.Version)
			}
		}
	}
}

func TestBinariesOfAReleaseSayWhatTheyAre(t *testing.T) {
	_, archives := snapshot(t)
	commit, date := headCommit(t)
	here, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	ran := false
	for _, a := range archives {
		goos, goarch, _ := strings.Cut(a.system, "/")
		settings := map[string]string{}
		for _, s := range a.info.Settings {
			settings[s.Key] = s.Value
		}
		for key, want := range map[string]string{"CGO_ENABLED": "0", "-trimpath": "true", "GOOS": goos, "GOARCH": goarch,
			"vcs.revision": commit, "vcs.modified": "false"} {
			if settings[key] != want {
				t.Errorf("%s: %s is %q, not %q", a.system, key, settings[key], want)
			}
		}
		if bytes.Contains(a.binary, []byte(here+"/")) {
			t.Errorf("%s: the binary holds the path of the folder that it was built in", a.system)
		}
		if a.system != runtime.GOOS+"/"+runtime.GOARCH {
			continue
		}
		ran = true
		program := filepath.Join(t.TempDir(), "docent")
		if err := os.WriteFile(program, a.binary, 0o700); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(program, "version", "--json").Output()
		if err != nil {
			t.Fatalf("docent version: %v", err)
		}
		var v struct {
			Version, Commit, Date, Go, OS, Arch string
			Modified                            bool
			Formats                             struct{ Journal, Index string }
		}
		if err := json.Unmarshal(out, &v); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		if v.Version != a.version || v.Commit != commit || v.Modified || v.Go != a.info.GoVersion || v.OS != goos || v.Arch != goarch ||
			v.Formats.Journal == "" || v.Formats.Index == "" {
			t.Errorf("docent version --json says %s", out)
		}
		if when, err := time.Parse(time.RFC3339, v.Date); err != nil || !when.Equal(date) {
			t.Errorf("it says that it is of %s, not of the commit's %s", v.Date, date)
		}
	}
	if !ran {
		t.Errorf("no binary is for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
}

func TestChecksumsOfAReleaseFit(t *testing.T) {
	dist, archives := snapshot(t)
	text, err := os.ReadFile(filepath.Join(dist, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(text)) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok || path.Base(name) != name {
			t.Errorf("a line that sha256sum does not read: %q", line)
		}
		sums[name] = sum
	}
	for name, want := range sums {
		content, err := os.ReadFile(filepath.Join(dist, name))
		if err != nil {
			t.Error(err)
			continue
		}
		if is := sha256.Sum256(content); hex.EncodeToString(is[:]) != want {
			t.Errorf("%s has another checksum", name)
		}
	}
	for _, a := range archives {
		stem := fmt.Sprintf("docent_%s_%s", a.version, strings.ReplaceAll(a.system, "/", "_"))
		for _, name := range []string{stem + ".cdx.json", stem + map[bool]string{true: ".zip", false: ".tar.gz"}[strings.HasPrefix(a.system,
			"windows")]} {
			if sums[name] == "" {
				t.Errorf("%s has no checksum; there are %v", name, slices.Sorted(maps.Keys(sums)))
			}
		}
	}
}

// What a binary was linked from is recorded in it by the toolchain: the list of its parts names all of that.
func TestThePartsListOfABinaryIsWhole(t *testing.T) {
	dist, archives := snapshot(t)
	for _, a := range archives {
		name := fmt.Sprintf("docent_%s_%s.cdx.json", a.version, strings.ReplaceAll(a.system, "/", "_"))
		text, err := os.ReadFile(filepath.Join(dist, name))
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			BOMFormat, SerialNumber string
			Metadata                struct {
				Timestamp string
				Component struct{ Name, Version string }
			}
			Components []struct{ Name, Version, Purl string }
		}
		if err := json.Unmarshal(text, &list); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if list.BOMFormat != "CycloneDX" || list.Metadata.Component.Name != "docent" || list.Metadata.Component.Version != a.version {
			t.Errorf("%s is a %s of %+v", name, list.BOMFormat, list.Metadata.Component)
		}
		if list.Metadata.Timestamp != "" || list.SerialNumber != "" {
			t.Errorf("%s differs from one build to the next: %q, %q", name, list.Metadata.Timestamp, list.SerialNumber)
		}
		parts := map[string]bool{}
		for _, c := range list.Components {
			parts[c.Name+" "+c.Version] = true
		}
		if len(a.info.Deps) == 0 {
			t.Errorf("%s: the binary names no modules", a.system)
		}
		for _, m := range a.info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			if !parts[m.Path+" "+m.Version] {
				t.Errorf("%s does not name %s %s", name, m.Path, m.Version)
			}
		}
		if !parts["std "+a.info.GoVersion] {
			t.Errorf("%s does not name the standard library of %s", name, a.info.GoVersion)
		}
	}
}

// The formula has the archives of this release, with their sums.
func TestTheFormulaOfAReleaseInstallsIt(t *testing.T) {
	dist, archives := snapshot(t)
	formula, err := os.ReadFile(filepath.Join(dist, "homebrew", "Formula", "docent.rb"))
	if err != nil {
		t.Fatal(err)
	}
	from := "https://" + strings.TrimSpace(run(t, command(t, filepath.Join(top, "scripts", "names"), "repository"))) + "/releases/download/"
	for _, a := range archives {
		goos, goarch, _ := strings.Cut(a.system, "/")
		name := fmt.Sprintf("docent_%s_%s_%s.tar.gz", a.version, goos, goarch)
		content, err := os.ReadFile(filepath.Join(dist, name))
		if goos == "windows" {
			continue
		}
		sum := sha256.Sum256(content)
		at := bytes.Index(formula, []byte("/"+name+`"`))
		if err != nil || at < 0 || !bytes.Contains(formula[at:min(at+300, len(formula))], []byte(hex.EncodeToString(sum[:]))) {
			t.Errorf("the formula has no %s, or another sum of it: %v", name, err)
		} else if line := string(formula[bytes.LastIndexByte(formula[:at], '\n')+1 : at]); !strings.Contains(line, `url "`+from) {
			t.Errorf("the formula takes %s from elsewhere than %s: %s", name, from, line)
		}
	}
	if ruby, err := exec.LookPath("ruby"); err == nil {
		run(t, command(t, ruby, "-c", filepath.Join(dist, "homebrew", "Formula", "docent.rb")))
	}
}

// The chart of a release is whole: Helm's own engine renders it, and it names the image of this release.
func TestTheChartOfAReleaseIsSound(t *testing.T) {
	dist, archives := snapshot(t)
	found, err := filepath.Glob(filepath.Join(dist, "docent-chart-*.tgz"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%q: %v", found, err)
	}
	text := run(t, command(t, filepath.Join(top, "bin", "docent-manifests"), found[0]))
	if want := "/docent:" + archives[0].version + "\n"; !strings.Contains(text, want) {
		t.Errorf("nothing names the image …%s\n%s", want, text)
	}
}
