package docs

import (
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"docent/cmd/docent/config"
	"docent/tests/harness"
)

// TestScripts runs the stories of testdata/script, in which each step is a command as a person types it. In the order
// of their numbers they are a manual: what a user does, and what Docent answers. Beside testscript's own commands they
// have
//
//	ready               wait until the server answers
//	capture NAME [EXPR] set a variable to what the last command printed, or to what the expression finds in it
//	await EXPR CMD...   run a command until it prints what matches
//	[bbolt], [postgres]  conditions: where the journal is
//	call METHOD PATH [FILE] [key=KEY] [sign=SECRET]  make a request to the server, as a program or a code host does
//
// The data directory is $WORK/data. Each server listens on an address of its own, $DOCENT_URL.
func TestScripts(t *testing.T) {
	params := testscript.Params{
		Dir: "../testdata/script", RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			address, err := harness.OwnAddress()
			if err != nil {
				return err
			}
			env.Setenv(harness.RaceOptions, os.Getenv(harness.RaceOptions))
			env.Setenv("DOCENT_LISTEN", address)
			env.Setenv("DOCENT_URL", "http://"+address)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"ready": scriptReady, "capture": harness.ScriptCapture, "await": harness.ScriptAwait,
		},
		Condition: harness.JournalIn(config.JournalBolt),
	}
	if testing.Short() {
		params.Dir, params.Files = "",
			[]string{"../testdata/script/01-start.txtar", "../testdata/script/03-ask.txtar", "../testdata/script/05-job.txtar"}
	}
	testscript.Run(t, params)
}

func scriptReady(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: ready")
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		resp, err := http.Get(ts.Getenv("DOCENT_URL") + "/readyz")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			ts.Fatalf("the server is not ready: %v", err)
		}
	}
}
