package mcp

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"docent/api"
	"docent/api/client"
)

const (
	agentInstructions = "This server edits one documentation set. create_job gives an instruction; job_status with wait says what became " +
		"of it and where the pull request is; job_diff shows the changes; follow_up asks for more on the same pull request."
)

type (
	createInput struct {
		Prompt string `json:"prompt" jsonschema:"what to change in the documentation"`
		Model  string `json:"model,omitempty" jsonschema:"a model of this server; default: the project's"`
		Draft  bool   `json:"draft,omitempty" jsonschema:"open the pull request as a draft"`
		DryRun bool   `json:"dryRun,omitempty" jsonschema:"publish nothing; job_diff shows what would change"`
		Key    string `json:"idempotencyKey,omitempty" jsonschema:"a request that comes again with the same key makes no second job"`
	}
	followInput struct {
		Job    string `json:"job" jsonschema:"id of the job"`
		Prompt string `json:"prompt"`
		Key    string `json:"idempotencyKey,omitempty" jsonschema:"a request that comes again with the same key is not carried out again"`
	}
	jobInput struct {
		Job string `json:"job" jsonschema:"id of the job"`
	}
	statusInput struct {
		Job  string `json:"job" jsonschema:"id of the job"`
		Wait int    `json:"wait,omitempty" jsonschema:"seconds to wait for the job to change, 0 to 60"`
	}
	listInput struct {
		Status string `json:"status,omitempty" jsonschema:"active, completed or failed; default: any"`
		Limit  int    `json:"limit,omitempty" jsonschema:"1 to 100; default: 20"`
	}
	diffOutput struct {
		Files []client.FileChange `json:"files"`
		Diff  string              `json:"diff" jsonschema:"unified diff of all files"`
	}
	listOutput struct {
		Jobs []api.Job `json:"jobs"`
	}
)

func (t tools) addAgent(server *mcp.Server) {
	writing := func(title string, repeatable bool) *mcp.ToolAnnotations {
		destroys := false // what is done stands on a branch of its own, for review
		return &mcp.ToolAnnotations{Title: title, DestructiveHint: &destroys, IdempotentHint: repeatable}
	}
	mcp.AddTool(server, &mcp.Tool{Name: "create_job", Annotations: writing("Start a job", false),
		Description: "Start a job that edits the documentation as the prompt says and opens a pull request."}, t.createJob)
	mcp.AddTool(server, &mcp.Tool{Name: "follow_up", Annotations: writing("Follow up on a job", false),
		Description: "Give a job that has ended one more instruction; its pull request gets another commit."}, t.followUp)
	mcp.AddTool(server, &mcp.Tool{Name: "job_status", Annotations: reading("Job status"),
		Description: "Read a job: whether it is active, completed or failed, its message, its pull request."}, t.jobStatus)
	mcp.AddTool(server, &mcp.Tool{Name: "job_diff", Annotations: reading("What a job has changed"),
		Description: "Read the changes of a job's last edit as a unified diff."}, t.jobDiff)
	mcp.AddTool(server, &mcp.Tool{Name: "list_jobs", Annotations: reading("List jobs"),
		Description: "List the project's jobs, newest first."}, t.listJobs)
	mcp.AddTool(server, &mcp.Tool{Name: "cancel_job", Annotations: writing("Stop a job", true),
		Description: "Stop an active job."}, t.cancelJob)
}

func (t tools) createJob(ctx context.Context, req *mcp.CallToolRequest, in createInput) (*mcp.CallToolResult, api.Job,
	error) {
	return told(t.client(req.Extra).CreateJob(ctx, string(t.project),
		client.CreateJob{Prompt: in.Prompt, Model: in.Model, AsDraft: in.Draft, DryRun: in.DryRun}, once(in.Key)...))
}

func (t tools) followUp(ctx context.Context, req *mcp.CallToolRequest, in followInput) (*mcp.CallToolResult, api.Job,
	error) {
	return told(t.client(req.Extra).FollowUp(ctx, string(t.project), in.Job, in.Prompt, once(in.Key)...))
}

func (t tools) cancelJob(ctx context.Context, req *mcp.CallToolRequest, in jobInput) (*mcp.CallToolResult, api.Job,
	error) {
	return told(t.client(req.Extra).CancelJob(ctx, string(t.project), in.Job))
}

func (t tools) jobStatus(ctx context.Context, req *mcp.CallToolRequest, in statusInput) (*mcp.CallToolResult, api.Job,
	error) {
	var wait []client.Option
	if in.Wait > 0 {
		wait = append(wait, client.Wait(time.Duration(in.Wait)*time.Second))
	}
	return told(t.client(req.Extra).ReadJob(ctx, string(t.project), in.Job, wait...))
}

// once makes a request be carried out once, if it has an idempotency key.
func once(key string) []client.Option {
	if key == "" {
		return nil
	}
	return []client.Option{client.IdempotencyKey(key)}
}

// told is what a tool says of a job.
func told(j api.Job, err error) (*mcp.CallToolResult, api.Job, error) {
	if err != nil {
		return nil, j, failed(err)
	}
	return say(sentence(j)), j, nil
}

func (t tools) listJobs(ctx context.Context, req *mcp.CallToolRequest, in listInput) (*mcp.CallToolResult, listOutput,
	error) {
	list, err := t.client(req.Extra).ListJobs(ctx, string(t.project),
		client.JobFilter{Status: api.JobStatus(in.Status), Limit: in.Limit})
	out := listOutput{list.Jobs}
	if err != nil {
		return nil, out, failed(err)
	}
	var text strings.Builder
	for _, j := range out.Jobs {
		text.WriteString("- " + sentence(j) + "\n")
	}
	if len(out.Jobs) == 0 {
		text.WriteString("There are no such jobs.")
	}
	return say(text.String()), out, nil
}

// jobDiff reads the job's log as far as it goes. It does not wait for what is still to come.
func (t tools) jobDiff(ctx context.Context, req *mcp.CallToolRequest, in jobInput) (*mcp.CallToolResult, diffOutput,
	error) {
	c := t.client(req.Extra)
	j, err := c.ReadJob(ctx, string(t.project), in.Job)
	if err != nil {
		return nil, diffOutput{}, failed(err)
	}
	if j.Status == api.JobActive {
		return say("The job is at work: ask again when job_status says that it has ended."), diffOutput{Files: []client.FileChange{}}, nil
	}
	out := diffOutput{Files: []client.FileChange{}}
	for e, err := range c.JobEvents(ctx, string(t.project), in.Job, 0) {
		if err != nil {
			return nil, out, failed(err)
		}
		if e.Type == "edited" {
			out = diffOutput{Files: e.Files, Diff: e.Diff}
		}
	}
	if out.Diff == "" {
		return say("The job has changed nothing."), out, nil
	}
	return say(out.Diff), out, nil
}

// sentence is a job in one line, for a model.
func sentence(j api.Job) string {
	text := fmt.Sprintf("%s is %s", j.ID, j.Status)
	if j.Outcome != "" {
		text += " (" + string(j.Outcome) + ")"
	}
	if j.PRLink != nil {
		text += ", pull request " + *j.PRLink
	}
	if j.Message != "" {
		text += ": " + j.Message
	}
	return text
}
