package deploy_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"docent/internal/testing/need"
)

// A unit is what unit files say: for each setting, such as Service.User, its values in their order.
type unit map[string][]string

// readUnit reads a unit and what is put over it. An empty value forgets those before it, as in systemd.
func readUnit(t testing.TB, files ...string) unit {
	t.Helper()
	u := unit{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		section := ""
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			name, value, ok := strings.Cut(line, "=")
			switch {
			case line == "" || strings.HasPrefix(line, "#"):
			case strings.HasPrefix(line, "["):
				section = strings.Trim(line, "[]")
			case !ok:
				t.Fatalf("%s: %q is no setting", file, line)
			case value == "":
				u[section+"."+name] = []string{""}
			default:
				u[section+"."+name] = append(slices.DeleteFunc(u[section+"."+name], func(v string) bool { return v == "" }), value)
			}
		}
	}
	return u
}

// one is the value of a setting that is there once.
func (u unit) one(t testing.TB, name string) string {
	t.Helper()
	if len(u[name]) != 1 {
		t.Fatalf("the unit has %d of %s", len(u[name]), name)
	}
	return u[name][0]
}

var (
	service = filepath.Join("systemd", "docent.service")
	socket  = filepath.Join("systemd", "docent.socket")
)

// here is what of a unit this machine may not have yet made to fit: the program and the user come with the package.
func here(text, program string) string {
	text = strings.Replace(text, "/usr/bin/docent ", program+" ", 1)
	return regexp.MustCompile(`(?m)^(User|Group)=docent$`).ReplaceAllString(text, "$1=root")
}

// verified has systemd read units and says what it has against them.
func verified(t testing.TB, texts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "docent")
	if err := os.WriteFile(program, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	args := []string{"verify", "--man=no", "--recursive-errors=no"}
	for name, text := range texts {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(here(text, program)), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, file)
	}
	out, err := command(t, "systemd-analyze", args...).CombinedOutput()
	if err != nil || strings.Contains(string(out), "docent.") {
		return fmt.Sprintf("%v %s", err, out)
	}
	return ""
}

func readUnits(t testing.TB) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, file := range []string{service, socket} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(file)] = string(text)
	}
	return texts
}

// systemd reads the units without a word, and rates what the service may do as little.
func TestSystemdTakesTheUnits(t *testing.T) {
	t.Parallel()
	need.Peer(t, "the packages", nfpmNeeds, "systemd-analyze")
	units := readUnits(t)
	if said := verified(t, units); said != "" {
		t.Errorf("systemd-analyze verify: %s", said)
	}
	security := func(text string) error {
		file := filepath.Join(t.TempDir(), "docent.service")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		// tenths of a point, of a hundred
		return command(t, "systemd-analyze", "security", "--offline=true", "--threshold=15", file).Run()
	}
	if err := security(units["docent.service"]); err != nil {
		t.Errorf("the service may do too much: systemd-analyze security --offline=true %s", service)
	}
	open := strings.Replace(units["docent.service"], "\nCapabilityBoundingSet=\n", "\n", 1)
	if _, failed := errors.AsType[*exec.ExitError](security(open)); !failed {
		t.Error("a service with all capabilities is rated as well")
	}
}

// What the documentation puts over the units, systemd takes.
func TestWhatIsPutOverTheUnits(t *testing.T) {
	t.Parallel()
	need.Peer(t, "the packages", nfpmNeeds, "systemd-analyze")
	page, err := os.ReadFile(filepath.Join(top, "docs", "deploy", "install.mdx"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```ini\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	for _, block := range blocks {
		units := readUnits(t)
		name := "docent.service"
		if strings.HasPrefix(block[1], "[Socket]") {
			name = "docent.socket"
		}
		units[name] += "\n" + block[1]
		if said := verified(t, units); said != "" {
			t.Errorf("%s\n%s", block[1], said)
		}
	}
	if len(blocks) < 3 {
		t.Errorf("only %d were found", len(blocks))
	}
	units := readUnits(t)
	units["docent.service"] += "\n[Service]\nReadWritePath=/srv\n"
	if verified(t, units) == "" {
		t.Error("a setting that does not exist is taken")
	}
}
