package docs

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"docent/cmd/docent/config"
	"docent/tests/harness"
)

// TestScripts runs the stories of testdata/script. In the order of their numbers they are a manual: what a user does, and what
// Docent answers. Each server listens on an address of its own.
func TestScripts(t *testing.T) {
	params := testscript.Params{
		Dir: "../testdata/script",
		Setup: func(env *testscript.Env) error {
			address := harness.OwnAddress(t)
			env.Setenv(harness.RaceOptions, os.Getenv(harness.RaceOptions))
			env.Setenv("DOCENT_LISTEN", address)
			env.Setenv("DOCENT_URL", "http://"+address)
			return nil
		},
	}
	if testing.Short() {
		params.Dir, params.Files = "",
			[]string{"../testdata/script/01-start.txtar", "../testdata/script/03-ask.txtar", "../testdata/script/05-job.txtar"}
	}
	harness.Stories(t, config.JournalBolt, params)
}
