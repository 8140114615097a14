package harness

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"docent/cmd/docent/config"
)

// Stories runs scripts in which each step is a command as a person types it. Beside testscript's own commands they have
//
//	ready               wait until the server of the script answers
//	capture NAME [EXPR] set a variable to what the last command printed, or to what the expression finds in it
//	await EXPR CMD...   run a command until it prints what matches
//	[bbolt], [postgres]  conditions: where the journal is
//	call METHOD PATH [FILE] [key=KEY] [sign=SECRET]  make a request to the server, as a program or a code host does
//
// The data directory is $WORK/data, the server listens on $DOCENT_LISTEN, and clients go to $DOCENT_URL.
func Stories(t *testing.T, journal string, params testscript.Params) {
	params.RequireUniqueNames = true
	params.Cmds = map[string]func(*testscript.TestScript, bool, []string){
		"ready": scriptReady, "capture": scriptCapture, "await": scriptAwait,
	}
	params.Condition = journalIn(journal)
	testscript.Run(t, params)
}

// journalIn gives the conditions [bbolt] and [postgres]: where the journal of the story is. Its check and its events are
// read from the file.
func journalIn(kind string) func(string) (bool, error) {
	return func(condition string) (bool, error) {
		switch condition {
		case config.JournalBolt, config.JournalPostgres:
			return condition == kind, nil
		}
		return false, fmt.Errorf("no condition is called %q", condition)
	}
}

func scriptReady(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: ready")
	}
	if err := untilReady("http://" + ts.Getenv("DOCENT_LISTEN")); err != nil {
		ts.Fatalf("the server is not ready: %v", err)
	}
}

func scriptCapture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 || len(args) > 2 {
		ts.Fatalf("usage: capture NAME [EXPR]")
	}
	text := strings.TrimSpace(ts.ReadFile("stdout"))
	if len(args) == 2 {
		m := regexp.MustCompile(args[1]).FindStringSubmatch(text)
		if m == nil {
			ts.Fatalf("%q matches nothing in %s", args[1], text)
		}
		text = m[len(m)-1] // the group, where there is one
	}
	ts.Setenv(args[0], text)
}

func scriptAwait(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: await EXPR CMD...")
	}
	want := regexp.MustCompile("(?m)" + args[0])
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		err := ts.Exec(args[1], args[2:]...)
		if err == nil && want.MatchString(ts.ReadFile("stdout")) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%q never prints %q: %v", strings.Join(args[1:], " "), args[0], err)
		}
	}
}

// call is the program that makes requests in scripts. An answer that is no success is its failure.
func call() {
	key, sign, args := "", "", []string{}
	for _, arg := range os.Args[1:] {
		switch name, value, _ := strings.Cut(arg, "="); name {
		case "key":
			key = value
		case "sign":
			sign = value
		default:
			args = append(args, arg)
		}
	}
	err := func() error {
		var body []byte
		var err error
		if len(args) > 2 {
			if body, err = os.ReadFile(args[2]); err != nil {
				return err
			}
		}
		req, err := http.NewRequest(args[0], os.Getenv("DOCENT_URL")+args[1],
			bytes.NewReader([]byte(os.ExpandEnv(string(body)))))
		if err != nil {
			return err
		}
		if len(body) > 0 {
			req.Header.Set("Content-Type", "application/json")
		}
		if key != "" {
			req.Header.Set("Authorization", "Bearer "+key)
		}
		if sign != "" {
			mac := hmac.New(sha256.New, []byte(sign))
			mac.Write([]byte(os.ExpandEnv(string(body))))
			req.Header.Set("X-GitHub-Event", "push")
			req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode >= 300 {
			text, _ := io.ReadAll(resp.Body)
			return fmt.Errorf("%s %s", resp.Status, text)
		}
		_, err = io.Copy(os.Stdout, resp.Body)
		return err
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
