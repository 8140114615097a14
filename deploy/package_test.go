package deploy_test

import (
	"regexp"
	"strings"
	"testing"

	"docent/internal/testing/need"
)

// Debian's own judge finds no error in the package, and warns of nothing.
func TestThePackageForDebianIsInOrder(t *testing.T) {
	t.Parallel()
	need.Peer(t, "the packages", nfpmNeeds, "lintian", "dpkg-deb")
	deb := buildPackage(t, "deb", "0.0.1")
	out, err := command(t, "lintian", "--fail-on", "error,warning", deb).CombinedOutput()
	if err != nil {
		t.Errorf("lintian: %v\n%s", err, out)
	}
}

// The package of rpm has the same files, keeps configuration that was changed, and its scripts are programs of sh.
func TestThePackageForRPMIsInOrder(t *testing.T) {
	t.Parallel()
	need.Peer(t, "the packages", nfpmNeeds, "rpm", "rpm2cpio", "cpio")
	file := buildPackage(t, "rpm", "0.0.1")
	listed := run(t, command(t, "rpm", "-qp", "--queryformat", `[%{FILEMODES:perms} %{FILEFLAGS:fflags} %{FILENAMES}\n]`, file))
	for _, want := range []string{`-rwxr-xr-x +/usr/bin/docent`, `-rw-r--r-- cn /etc/docent/docent.toml`,
		`-rw------- cn /etc/docent/docent.env`, `-rw-r--r-- +/usr/lib/systemd/system/docent.service`,
		`-rw-r--r-- +/usr/lib/systemd/system/docent.socket`, `-rw-r--r-- +/usr/lib/sysusers.d/docent.conf`,
		`-rw-r--r-- d? *\+?/usr/share/man/man1/docent-serve.1.gz`, `-rw-r--r-- +/usr/share/bash-completion/completions/docent`} {
		if !regexp.MustCompile(`(?m)^` + want + `$`).MatchString(listed) {
			t.Errorf("there is no %s among\n%s", want, listed)
		}
	}
	for _, which := range []string{"PREIN", "POSTIN", "PREUN", "POSTUN"} {
		script := run(t, command(t, "rpm", "-qp", "--queryformat", "%{"+which+"}", file))
		check := command(t, "sh", "-n")
		check.Stdin = strings.NewReader(script)
		if run(t, check); !strings.Contains(script, "docent") {
			t.Errorf("%s says %q", which, script)
		}
	}
	unpack := command(t, "sh", "-c", `rpm2cpio "$1" | cpio --extract --make-directories --no-absolute-filenames --quiet && usr/bin/docent version`, "sh", file)
	unpack.Dir = t.TempDir()
	if said := run(t, unpack); !strings.Contains(said, "0.0.1") {
		t.Errorf("the program in it says %q", said)
	}
}
