package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"docent/api"
	"docent/api/client"
	"docent/bench/lab"
	"docent/docs"
)

func newDemoCommand() *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use: "demo", Short: "See Docent at work on its own documentation, in a temporary directory",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			process, err := lab.NewProcess("demo")
			if err != nil {
				return err
			}
			defer process.Close()
			d := &demo{process, cmd, cmd.OutOrStdout()}
			if err := d.run(cmd.Context()); err != nil {
				return err
			}
			if !keep {
				return nil
			}
			d.say("\nThe server stays up at %s. Press Ctrl-C to end it and remove its data.", d.URL)
			select {
			case <-cmd.Context().Done():
			case <-d.Ended():
				return errors.New("the server ended by itself; its log:\n" + d.Log())
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "leave the server running at the end")
	return cmd
}

// A demo plays an operator, a reader and a maintainer. Everything goes through the binary's own commands and its
// public API.
type demo struct {
	*lab.Process
	cmd *cobra.Command
	out io.Writer
}

func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

func (d *demo) step(format string, args ...any) {
	fmt.Fprintf(d.out, "\n── "+format+"\n\n", args...)
}

func (d *demo) run(ctx context.Context) error {
	start := time.Now()
	if err := d.setUp(ctx); err != nil {
		return err
	}
	thread, err := d.reader(ctx)
	if err != nil {
		return err
	}
	j, err := d.maintainer(ctx)
	if err != nil {
		return err
	}
	if err := d.crash(ctx, thread, j); err != nil {
		return err
	}
	d.goOn(time.Since(start))
	return nil
}

// setUp copies the documentation, adds the project, makes the keys and starts the server.
func (d *demo) setUp(ctx context.Context) error {
	source := filepath.Join(d.Dir, "docs")
	if err := os.CopyFS(source, docs.Files); err != nil {
		return fmt.Errorf("copy the documentation: %w", err)
	}
	d.step("1. The operator starts a server on an empty data directory")
	if err := d.Serve(ctx, "127.0.0.1:0"); err != nil {
		return err
	}
	d.say("docent serve --data %s --listen %s", d.Data(), strings.TrimPrefix(d.URL, "http://"))

	d.step("2. … points it at a documentation set: Docent's own, %d files", countFiles(docs.Files))
	project, err := d.MakeProject(ctx, source)
	if err != nil {
		return err
	}
	d.say("project %s: %d pages in %d sections are searchable", project.ID, project.Pages, project.Sections)

	d.step("3. … and makes two keys: a secret one for the agent, a public one for readers")
	d.say("admin key:     %s\nassistant key: %s", d.Admin, d.Readers)
	return nil
}

// reader asks a question and a follow-up, and returns the thread.
func (d *demo) reader(ctx context.Context) (string, error) {
	d.step("4. A reader asks; the answer streams, from the documentation, with its sources")
	first, err := d.ask("", "How do I get started?")
	if err != nil {
		return "", err
	}
	d.step("5. … and asks a second question in the same thread")
	if _, err := d.ask(first.ThreadID, "How do I make a backup?"); err != nil {
		return "", err
	}
	return first.ThreadID, nil
}

func (d *demo) ask(thread, text string) (client.Answer, error) {
	d.say("> %s\n", text)
	c := client.Client{Base: d.URL, Key: d.Readers}
	a, err := c.Ask(d.cmd.Context(), client.Question{Domain: lab.Domain, Thread: thread, Caller: "anonymous", Text: text},
		d.out)
	if err != nil {
		return a, err
	}
	if len(a.Sources) == 0 {
		return a, fmt.Errorf("the answer to %q cites no source", text)
	}
	d.say("")
	printSources(d.out, a)
	return a, nil
}

// maintainer has the agent edit the documentation, and reads the pull request.
func (d *demo) maintainer(ctx context.Context) (api.Job, error) {
	d.step("6. A maintainer asks the agent for an edit and gets a pull request")
	c := client.Client{Base: d.URL, Key: d.Admin}
	const rename = `rename "Docent" to "Docent Server" in quickstart.mdx`
	d.say("> %s\n", rename)
	made, err := c.CreateJob(ctx, lab.ProjectID, client.CreateJob{Prompt: rename})
	if err != nil {
		return made, err
	}
	j, err := d.ended(ctx, &c, made)
	if err != nil {
		return j, err
	}
	if err := d.showPull(ctx, j); err != nil {
		return j, err
	}
	d.step("7. A follow-up becomes a second commit on the same pull request")
	link := *j.PRLink
	const describe = `set the description of quickstart.mdx to "From nothing to a first answer and a first pull request in five minutes."`
	d.say("> %s\n", describe)
	if made, err = c.FollowUp(ctx, lab.ProjectID, string(j.ID), describe); err != nil {
		return made, err
	}
	if j, err = d.ended(ctx, &c, made); err != nil {
		return j, err
	}
	if j.PRLink == nil || *j.PRLink != link {
		return j, errors.New("the follow-up opened another pull request")
	}
	return j, d.showPull(ctx, j)
}

// ended waits until a job has ended.
func (d *demo) ended(ctx context.Context, c *client.Client, j api.Job) (api.Job, error) {
	d.say("%s  %s", j.ID, j.Status)
	j, err := c.WaitForJob(ctx, lab.ProjectID, string(j.ID))
	if err != nil {
		return j, err
	}
	d.say("%s  %s: %s", j.ID, j.Status, j.Message)
	if j.Status != api.JobCompleted || j.PRLink == nil {
		return j, fmt.Errorf("the job ended %s without a pull request: %s", j.Status, j.Message)
	}
	return j, nil
}

func (d *demo) showPull(ctx context.Context, j api.Job) error {
	d.say("\nPull request: %s\n", *j.PRLink)
	diff, err := lab.Get(ctx, *j.PRLink+".diff")
	if err != nil {
		return err
	}
	d.say("%s", strings.TrimSpace(diff))
	return nil
}

// crash kills the server and shows that what it had accepted is still there.
func (d *demo) crash(ctx context.Context, thread string, j api.Job) error {
	d.step("8. The server is killed (SIGKILL) and started again on the same data directory")
	if err := d.Restart(ctx); err != nil {
		return err
	}
	c := client.Client{Base: d.URL, Key: d.Admin}
	after, err := c.ReadJob(ctx, lab.ProjectID, string(j.ID))
	if err != nil {
		return err
	}
	if after.Status != j.Status || after.PRLink == nil || *after.PRLink != *j.PRLink {
		return fmt.Errorf("the job changed across the restart: %+v", after)
	}
	d.say("job %s is still %s, its pull request still at %s", after.ID, after.Status, *after.PRLink)
	if _, err := lab.Get(ctx, *after.PRLink); err != nil {
		return fmt.Errorf("open the pull request: %w", err)
	}
	d.say("thread %s goes on:\n", thread)
	_, err = d.ask(thread, "Which settings can I change?")
	return err
}

func (d *demo) goOn(took time.Duration) {
	d.step("Done in %.1f s. How to go on", took.Seconds())
	fmt.Fprintf(d.out, `Serve your own documentation (a folder, a git repository or a git URL):

  docent serve                                                              # in a terminal of its own
  docent project add docs --domain docs.example.com --source PATH-or-URL
  export ASSISTANT_KEY=$(docent key create --project docs --kind assistant)
  export ADMIN_KEY=$(docent key create --project docs --kind admin)

Ask from the shell:

  curl -N http://127.0.0.1:8080/discovery/v2/assistant/docs.example.com/message \
    -H "Authorization: Bearer $ASSISTANT_KEY" -H "Content-Type: application/json" \
    -d '{"fp":"anonymous","messages":[{"role":"user","parts":[{"type":"text","text":"How do I start?"}]}]}'

Ask from a page (AI SDK 5 or later):

  const { messages, sendMessage } = useChat({
    transport: new DefaultChatTransport({
      api: "http://127.0.0.1:8080/discovery/v2/assistant/docs.example.com/message",
      headers: { Authorization: "Bearer " + ASSISTANT_KEY },
      body: { fp: "anonymous" },
    }),
  });

Give the agent work:

  curl http://127.0.0.1:8080/v2/agent/docs/job -H "Authorization: Bearer $ADMIN_KEY" \
    -H "Content-Type: application/json" -d '{"prompt":"fix broken internal links"}'

`+"`make demo KEEP=1` leaves the server running, so that you can open the pull request in a browser.\n")
}

func countFiles(files fs.FS) int {
	n := 0
	_ = fs.WalkDir(files, ".", func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			n++
		}
		return err
	})
	return n
}
