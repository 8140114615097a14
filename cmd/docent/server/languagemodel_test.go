package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"docent/agent"
	"docent/cmd/docent/config"
	"docent/model/registry"
)

// A job is told that a model cannot be reached; the built-in one answers in its place unless the model's owner wants its errors.
func TestAJobIsToldThatItsModelCannotBeReached(t *testing.T) {
	t.Parallel()
	const table = "[models.%s]\nprovider = \"openai\"\nbase_url = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\nattempts = 1\n"
	file := filepath.Join(t.TempDir(), "docent.toml")
	text := fmt.Sprintf(table, "away") + fmt.Sprintf(table, "strict") + "fallback = false\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(file, func(string) (string, bool) { return "", false }, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := registry.New(config.Registry(c))
	if err != nil {
		t.Fatal(err)
	}
	for name, falls := range map[string]bool{"away": true, "strict": false} {
		lm, err := languageModels{r}.LanguageModel(name)
		if err != nil {
			t.Fatal(err)
		}
		_, err = lm.Chat(t.Context(), agent.Chat{Turns: []agent.Turn{{Role: "user", Text: "x"}}})
		var u *agent.Unavailable
		if !errors.As(err, &u) || !strings.HasPrefix(u.Err.Error(), "model "+name+" at 127.0.0.1:1 cannot be reached: ") ||
			!strings.Contains(u.Err.Error(), "connection refused") {
			t.Errorf("a job is told %v", err)
		}
		if r.FallsBack(name, err) != falls {
			t.Errorf("the built-in model answers for %s: %v", name, !falls)
		}
	}
}
