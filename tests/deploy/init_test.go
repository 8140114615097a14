package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"docent/tests/harness"
)

// initialized runs `docent init` with nobody at a terminal.
func initialized(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), harness.Self(t), append([]string{"init"}, args...)...)
	cmd.Env = harness.Environment(t)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestInitIsIdempotentAndOverwritesNothing(t *testing.T) {
	t.Parallel()
	const key = "sk-NobodyMaySeeThis"
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(in("key"), []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := initialized(t, "--config", in("c.toml")); err == nil || !strings.Contains(out, "needs --source") {
		t.Errorf("without a source: %v, %s", err, out)
	}
	args := []string{"--source", harness.WriteFiles(t, harness.Harbour), "--config", in("docent.toml"), "--data", in("data"), "--listen", "127.0.0.1:8089",
		"--public-url", "https://docent.example.com", "--model", "openai", "--model-url", "http://127.0.0.1:1/v1", "--model-name", "small",
		"--model-key-file", in("key"), "--unit=" + in("units"), "--compose=" + in("compose.yaml")}
	out, err := initialized(t, args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	before := map[string]string{}
	for name, want := range map[string]string{"docent.toml": `key_env = "MODEL_KEY"`, "docent.env": "MODEL_KEY=" + key,
		"units/docent.service": "--data " + in("data") + " --config " + in("docent.toml"), "units/docent.socket": "ListenStream=127.0.0.1:8089",
		"compose.yaml": `"127.0.0.1:8089:8089"`} {
		text, err := os.ReadFile(in(name))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
		if before[name] = string(text); name != "docent.env" && strings.Contains(string(text), key) {
			t.Errorf("%s holds the key", name)
		}
	}
	if info, err := os.Stat(in("docent.env")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if service := before["units/docent.service"]; !strings.Contains(service, "ReadWritePaths="+in("data")) || !strings.Contains(service, "ProtectSystem=strict") {
		t.Errorf("%s", service)
	}
	again, err := initialized(t, args...)
	if err != nil || !strings.Contains(again, "project docs is there already") || !strings.Contains(again, "docent.toml is as it should be") {
		t.Errorf("%v\n%s", err, again)
	}
	changed := append(args, "--listen", "127.0.0.1:8090")
	differs, err := initialized(t, changed...)
	if err == nil || !strings.Contains(differs, `- listen = "127.0.0.1:8089"`) || !strings.Contains(differs, `+ listen = "127.0.0.1:8090"`) {
		t.Errorf("%v\n%s", err, differs)
	}
	for name, text := range before {
		if now, err := os.ReadFile(in(name)); err != nil || string(now) != text {
			t.Errorf("%s was written over: %v", name, err)
		}
	}
	forced, err := initialized(t, append(changed, "--force")...)
	if text, _ := os.ReadFile(in("docent.toml")); err != nil || !strings.Contains(string(text), "8090") {
		t.Errorf("--force: %v\n%s", err, forced)
	}
	if strings.Contains(out+again+differs+forced, key) {
		t.Error("the key is shown")
	}
}
