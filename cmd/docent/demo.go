package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"docent/api"
	"docent/client"
	"docent/datadir"
	"docent/docs"
	"docent/ingest"
)

func newDemoCommand() *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use: "demo", Short: "Show the whole of Docent at work on its own documentation, in a temporary directory", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := &demo{cmd: cmd, out: cmd.OutOrStdout()}
			defer d.cleanUp()
			if err := d.run(cmd.Context()); err != nil {
				return err
			}
			if !keep {
				return nil
			}
			d.say("\nThe server stays up at %s. Press Ctrl-C to end it and remove its data.", d.url)
			select {
			case <-cmd.Context().Done():
			case <-d.ended:
				return errors.New("the server ended by itself; its log:\n" + d.serverLog())
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "leave the server running at the end")
	return cmd
}

// A demo plays an operator, a reader and a maintainer. Everything goes through the binary's own commands and its
// public API; nothing is arranged behind the curtain.
type demo struct {
	cmd    *cobra.Command
	out    io.Writer
	dir    string // temporary; holds the documentation and the data directory
	url    string
	server *exec.Cmd
	ended  chan struct{} // closed when the server process has ended
	shares *division     // of the processors

	config  string // configuration file; none where empty
	project ingest.Project

	admin, assistant string // keys
}

func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

func (d *demo) step(format string, args ...any) {
	fmt.Fprintf(d.out, "\n── "+format+"\n\n", args...)
}

const (
	demoProject = "handbook"
	demoDomain  = "handbook.example.com"
)

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
	var err error
	if d.dir, err = os.MkdirTemp("", "docent-demo-"); err != nil {
		return err
	}
	source := filepath.Join(d.dir, "docs")
	if err := os.CopyFS(source, docs.Files); err != nil {
		return fmt.Errorf("copy the documentation: %w", err)
	}
	d.step("1. The operator starts a server on an empty data directory")
	if err := d.start(ctx, "127.0.0.1:0"); err != nil {
		return err
	}
	d.say("docent serve --data %s --listen %s", d.data(), strings.TrimPrefix(d.url, "http://"))

	d.step("2. … points it at a documentation set: Docent's own, %d files", countFiles(docs.Files))
	if err := d.makeProject(ctx, source); err != nil {
		return err
	}
	d.say("project %s: %d pages in %d sections are searchable", d.project.ID, d.project.Pages, d.project.Sections)

	d.step("3. … and makes two keys: a secret one for the agent, a public one for readers")
	d.say("admin key:     %s\nassistant key: %s", d.admin, d.assistant)
	return nil
}

// reader asks a question and a follow-up, and returns the thread.
func (d *demo) reader(ctx context.Context) (string, error) {
	d.step("4. A reader asks; the answer streams, from the documentation, with its sources")
	first, err := d.ask("", "What happens to a job when the server is killed?")
	if err != nil {
		return "", err
	}
	d.step("5. … and asks on in the same thread")
	if _, err := d.ask(first.ThreadID, "How do I make a backup?"); err != nil {
		return "", err
	}
	return first.ThreadID, nil
}

func (d *demo) ask(thread, text string) (client.Answer, error) {
	d.say("> %s\n", text)
	c := client.Client{Base: d.url, Key: d.assistant, HTTP: http.DefaultClient}
	a, err := c.Ask(d.cmd.Context(), client.Question{Domain: demoDomain, Thread: thread, Caller: "anonymous", Text: text}, d.out)
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
	j, err := d.job(ctx, "/job", `rename "Docent" to "Docent Server" in quickstart.mdx`)
	if err != nil {
		return j, err
	}
	if err := d.showPull(ctx, j); err != nil {
		return j, err
	}
	d.step("7. A follow-up becomes a second commit on the same pull request")
	link := *j.PRLink
	j, err = d.job(ctx, "/job/"+string(j.ID)+"/message", `set the description of quickstart.mdx to "From nothing to a first answer and a first pull request in five minutes."`)
	if err != nil {
		return j, err
	}
	if j.PRLink == nil || *j.PRLink != link {
		return j, errors.New("the follow-up opened another pull request")
	}
	return j, d.showPull(ctx, j)
}

// job posts a prompt and waits until the job has ended.
func (d *demo) job(ctx context.Context, path, prompt string) (api.Job, error) {
	d.say("> %s\n", prompt)
	c := client.Client{Base: d.url, Key: d.admin, HTTP: http.DefaultClient}
	base := "/v2/agent/" + demoProject
	var j api.Job
	if err := c.Post(ctx, base+path, map[string]string{"prompt": prompt}, &j); err != nil {
		return j, err
	}
	d.say("%s  %s", j.ID, j.Status)
	for j.Status == api.JobActive {
		if err := c.Get(ctx, base+"/job/"+string(j.ID)+"?wait=30", &j); err != nil {
			return j, err
		}
	}
	d.say("%s  %s: %s", j.ID, j.Status, j.Message)
	if j.Status != api.JobCompleted || j.PRLink == nil {
		return j, fmt.Errorf("the job ended %s without a pull request: %s", j.Status, j.Message)
	}
	return j, nil
}

func (d *demo) showPull(ctx context.Context, j api.Job) error {
	d.say("\nPull request: %s\n", *j.PRLink)
	diff, err := get(ctx, *j.PRLink+".diff")
	if err != nil {
		return err
	}
	d.say("%s", strings.TrimSpace(diff))
	return nil
}

// crash kills the server and shows that what it had accepted is still there.
func (d *demo) crash(ctx context.Context, thread string, j api.Job) error {
	d.step("8. The server is killed (SIGKILL) and started again on the same data directory")
	listen := strings.TrimPrefix(d.url, "http://")
	d.kill()
	if err := d.start(ctx, listen); err != nil {
		return err
	}
	c := client.Client{Base: d.url, Key: d.admin, HTTP: http.DefaultClient}
	var after api.Job
	if err := c.Get(ctx, "/v2/agent/"+demoProject+"/job/"+string(j.ID), &after); err != nil {
		return err
	}
	if after.Status != j.Status || after.PRLink == nil || *after.PRLink != *j.PRLink {
		return fmt.Errorf("the job changed across the restart: %+v", after)
	}
	d.say("job %s is still %s, its pull request still at %s", after.ID, after.Status, *after.PRLink)
	if _, err := get(ctx, *after.PRLink); err != nil {
		return fmt.Errorf("open the pull request: %w", err)
	}
	d.say("thread %s goes on:\n", thread)
	_, err := d.ask(thread, "Which settings can I change?")
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

func (d *demo) data() string { return filepath.Join(d.dir, "data") }

// start runs this binary as the server and waits until it is ready.
func (d *demo) start(ctx context.Context, listen string) error {
	if strings.HasSuffix(listen, ":0") {
		var err error
		if listen, err = freeAddress(); err != nil {
			return err
		}
	}
	return d.launch(ctx, listen, datadir.Server, "--data", d.data(), "--listen", listen, "--config", d.config)
}

// launch runs this binary with some arguments and waits until it serves at the address.
func (d *demo) launch(ctx context.Context, listen string, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(d.dir, "server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	d.server = exec.Command(self, args...)
	d.server.Stdout, d.server.Stderr = log, log
	if err := d.shares.start(d.server); err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	ended := make(chan struct{})
	go func(server *exec.Cmd) {
		_ = server.Wait()
		close(ended)
	}(d.server)
	d.ended, d.url = ended, "http://"+listen
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	for {
		if _, err := get(ctx, d.url+"/readyz"); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ended:
			return errors.New("the server did not start; its log:\n" + d.serverLog())
		case <-deadline.C:
			return errors.New("the server was not ready within 20 s; its log:\n" + d.serverLog())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// docent runs one of the binary's own commands and reads its JSON.
func (d *demo) docent(ctx context.Context, result any, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("docent %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return json.Unmarshal(out, result)
}

// kill ends the server the hard way.
func (d *demo) kill() {
	if d.server != nil {
		_ = d.server.Process.Kill()
		<-d.ended
		d.server = nil
	}
}

func (d *demo) serverLog() string {
	text, _ := os.ReadFile(filepath.Join(d.dir, "server.log"))
	return string(text)
}

func (d *demo) cleanUp() {
	d.stop()
	if d.dir != "" {
		os.RemoveAll(d.dir)
	}
}

// get reads a page that needs no key.
func get(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", client.ResponseError(resp)
	}
	text, err := io.ReadAll(bufio.NewReader(resp.Body))
	return string(text), err
}

// freeAddress finds a loopback port that nobody listens on.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return listener.Addr().String(), nil
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
