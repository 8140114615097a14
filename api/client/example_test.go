package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"docent/api/client"
	"docent/internal/race"
)

// The examples run against a server of this source: its address and keys.
var server, adminKey, assistantKey string

// TestMain builds docent and serves a small documentation set. Without it the examples would be decoration.
func TestMain(m *testing.M) {
	if race.Enabled { // the server is not looked at: it is built as .ci/run has built it before, and not compiled once more
		os.Setenv("CGO_ENABLED", "0")
	}
	dir, err := os.MkdirTemp("", "docent-client")
	if err != nil {
		log.Fatal(err)
	}
	stop, err := serve(dir)
	code := 1
	if err == nil {
		code = m.Run()
	} else {
		log.Print(err)
	}
	stop()
	os.RemoveAll(dir)
	os.Exit(code)
}

func serve(dir string) (stop func(), err error) {
	stop = func() {}
	docent, docs, data := filepath.Join(dir, "docent"), filepath.Join(dir, "docs"), filepath.Join(dir, "data")
	const page = "# Boats\n\nTo moor a boat, run `harbour moor BOAT`.\n"
	if err := errors.Join(
		os.Mkdir(docs, 0o755),
		os.WriteFile(filepath.Join(docs, "boats.md"), []byte(page), 0o644),
	); err != nil {
		return stop, err
	}
	run := func(name string, args ...string) (string, error) {
		out, err := exec.Command(name, args...).Output()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%s %v: %w\n%s", name, args, err, exit.Stderr)
		}
		return string(out), err
	}
	if _, err := run("go", "build", "-o", docent, "docent/cmd/docent"); err != nil {
		return stop, err
	}
	if _, err := run(
		docent,
		"project",
		"add",
		"--data",
		data,
		"--id",
		"docs",
		"--domain",
		"docs.example.com",
		"--source",
		docs,
		"--site-url",
		"https://docs.example.com",
	); err != nil {
		return stop, err
	}
	for kind, key := range map[string]*string{"admin": &adminKey, "assistant": &assistantKey} {
		out, err := run(docent, "key", "create", "--data", data, "--project", "docs", "--kind", kind, "--json")
		var made struct{ Key string }
		if err := errors.Join(err, json.Unmarshal([]byte(out), &made)); err != nil {
			return stop, err
		}
		*key = made.Key
	}
	cmd := exec.Command(docent, "serve", "--data", data, "--listen", "127.0.0.1:0", "--log-format", "json")
	logs, err := cmd.StderrPipe()
	if err != nil {
		return stop, err
	}
	if err := cmd.Start(); err != nil {
		return stop, err
	}
	stop = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	lines := json.NewDecoder(logs)
	for {
		var line struct{ Msg, Address string }
		if err := lines.Decode(&line); err != nil {
			return stop, fmt.Errorf("the server's log: %w", err)
		}
		if line.Address != "" {
			server = "http://" + strings.TrimPrefix(line.Address, "http://")
			go func() { _, _ = io.Copy(io.Discard, io.MultiReader(lines.Buffered(), logs)) }()
			break
		}
	}
	c := client.New(server, adminKey)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for { // the listener is there before work is taken
		if _, err := c.Ready(ctx); err == nil || ctx.Err() != nil {
			return stop, ctx.Err()
		}
	}
}

// The answer as it is written, and where it is from.
func ExampleClient_AskStream() {
	c := client.New(server, assistantKey)
	question := client.Question{Domain: "docs.example.com", Text: "How do I moor a boat?"}
	for part, err := range c.AskStream(context.Background(), question) {
		if err != nil {
			log.Fatal(err)
		}
		switch part.Kind {
		case client.PartText:
			fmt.Print(part.Text)
		case client.PartFinish:
			fmt.Println()
			for _, s := range part.Answer.Sources {
				fmt.Println(s.URL)
			}
		}
	}
	// Output:
	// To moor a boat, run `harbour moor BOAT`. [1]
	// https://docs.example.com/boats
}

// The shortest way: the text goes to a writer, the rest comes back.
func ExampleClient_Ask() {
	c := client.New(server, assistantKey)
	a, err := c.Ask(
		context.Background(),
		client.Question{Domain: "docs.example.com", Text: "How do I moor a boat?"},
		os.Stdout,
	)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("\n" + a.Sources[0].Title)
	// Output:
	// To moor a boat, run `harbour moor BOAT`. [1]
	// Boats
}

// An instruction that is carried out once, however often it is sent, and its end.
func ExampleClient_CreateJob() {
	ctx := context.Background()
	c := client.New(server, adminKey)
	job, err := c.CreateJob(
		ctx,
		"docs",
		client.CreateJob{Prompt: `replace "moor" with "tie up" in boats.md`, DryRun: true},
		client.IdempotencyKey("release-2.1"),
	)
	if err != nil {
		log.Fatal(err)
	}
	if job, err = c.WaitForJob(ctx, "docs", string(job.ID)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(job.Status, job.Outcome)
	// Output: completed changed
}

// What a job does while it does it.
func ExampleClient_JobEvents() {
	ctx := context.Background()
	c := client.New(server, adminKey)
	job, err := c.CreateJob(
		ctx,
		"docs",
		client.CreateJob{Prompt: `replace "boat" with "ship" in boats.md`, DryRun: true},
	)
	if err != nil {
		log.Fatal(err)
	}
	for event, err := range c.JobEvents(ctx, "docs", string(job.ID), 0) {
		switch {
		case err != nil:
			log.Fatal(err)
		case event.Job != nil: // the last one
			fmt.Println(event.Job.Status)
		case event.Type == "edited":
			for _, f := range event.Files {
				fmt.Println(f.Status, f.Path, f.Added, f.Removed)
			}
		}
	}
	// Output:
	// modified boats.md 1 1
	// completed
}

// All jobs that have failed, page by page.
func ExampleClient_Jobs() {
	c := client.New(server, adminKey)
	for job, err := range c.Jobs(context.Background(), "docs", client.JobFilter{Status: "failed"}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(job.ID, job.Message)
	}
	// Output:
}

// What the server says of a request that is wrong.
func ExampleError() {
	c := client.New(server, adminKey)
	_, err := c.CreateJob(context.Background(), "docs", client.CreateJob{Prompt: " "})
	var refused *client.Error
	if errors.As(err, &refused) {
		fmt.Println(refused.Status, refused.Code, refused.Details[0].Field)
	}
	_, err = c.ReadJob(context.Background(), "docs", "job_none")
	fmt.Println(errors.Is(err, client.ErrNotFound), errors.Is(err, client.ErrLimited))
	// Output:
	// 400 invalid_request prompt
	// true false
}

func ExampleClient_Search() {
	c := client.New(server, assistantKey)
	c.HTTP = &http.Client{Timeout: 10 * time.Second} // not for answers, which stream
	hits, err := c.Search(context.Background(), "docs.example.com", client.Search{Query: "moor", PageSize: 3})
	if err != nil {
		log.Fatal(err)
	}
	for _, h := range hits {
		fmt.Println(h.Metadata.Title, h.Metadata.URL)
	}
	// Output: Boats https://docs.example.com/boats
}
