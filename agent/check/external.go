package check

import (
	"context"
	"fmt"

	"docent/agent/say"
	"docent/agent/workspace"
	"docent/api"
)

// Checks runs the command that a project's operator has set to look at a result, on all files of the repository.
type Checks interface {
	// Check gives what the command says against the files; "" where it is content. It is not there (nil error, ok false)
	// for projects without one. An error means that it could not be run.
	Check(ctx context.Context, project api.Project, files Files) (complaint string, ok bool, err error)
}

// Files are the files of a repository, to be written to where a command can see them.
type Files interface {
	List() []api.File
	Read(path string) ([]byte, error)
}

// overlaid is the repository with the edits.
type overlaid struct{ ws *workspace.Workspace }

func (o overlaid) List() []api.File {
	var out []api.File
	for _, p := range o.ws.List() {
		out = append(out, api.File{Path: p, Size: o.ws.Size(p)})
	}
	return out
}

func (o overlaid) Read(p string) ([]byte, error) { return o.ws.Raw(p) }

// RunChecks runs the operator's command. What it says against the pages as they were before is no fault of the edits.
func RunChecks(ctx context.Context, checks Checks, project api.Project, ws *workspace.Workspace) (complaint,
	passed string, err error) {
	says, ok, err := checks.Check(ctx, project, overlaid{ws})
	switch {
	case ctx.Err() != nil:
		return "", "", ctx.Err()
	case err != nil:
		return "", "", fmt.Errorf("run the project's check: %w", err)
	case !ok:
		return "", "", nil
	case says == "":
		return "", "the project's own check has passed", nil
	}
	if before, _, err := checks.Check(ctx, project, overlaid{ws.Unedited()}); err == nil && before != "" {
		return "", "the project's own check fails, and failed before the change as well", nil
	}
	if ctx.Err() != nil {
		return "", "", ctx.Err()
	}
	return "the project's own check fails:\n" + say.Fenced(say.Middle(say.Visible(says), 6000)), "", nil
}
