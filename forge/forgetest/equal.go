package forgetest

import (
	"errors"
	"fmt"
	"testing"

	"docent/forge"
	"docent/internal/background"
)

const newSetup = "# Set up\n\nNew.\n"

// joining is the n-th job's publication of a new setup page.
func (h Host) joining(t *testing.T, n int, content string) forge.Publication {
	t.Helper()
	p := Publication(h.Project, h.tip(t, fmt.Sprintf("docent/job_%d", n)), content)
	p.Join, p.Title, p.Message = true, fmt.Sprint("In the words of job ", n), fmt.Sprint("docs: job ", n)
	return p
}

func equal(t *testing.T, h Host) {
	if h.Close == nil {
		p := h.joining(t, 1, newSetup)
		h.publish(t, p)
		if done := h.publish(t, h.joining(t, 2, newSetup)); done.Joined != "" {
			t.Errorf("without pull requests, one was joined: %+v", done)
		}
		return
	}
	first := h.publish(t, h.joining(t, 1, newSetup))
	second := h.joining(t, 2, newSetup)
	for range 2 { // a repeat finds the same
		done := h.publish(t, second)
		if done.Joined != "docent/job_1" || done.Link != first.Link || done.Number != first.Number ||
			done.Commit != first.Commit || done.New {
			t.Errorf("the same change is published as %+v, want to join %+v", done, first)
		}
	}
	if got := h.Commits(t, second.Branch); len(got) != 0 {
		t.Errorf("its branch has %v", got)
	}
	h.requests(t, second.Branch, 0)

	// The base moves on elsewhere, and the change is still the same.
	h.Push(t, second.Base, "index.md", "# Welcome\n\nChanged meanwhile.\n")
	if done := h.publish(t, h.joining(t, 3, newSetup)); done.Joined != "docent/job_1" {
		t.Errorf("after the base moved, it is published as %+v", done)
	}
	// What differs, and who does not want to join, has a pull request of its own.
	if done := h.publish(t, h.joining(t, 4, "# Set up\n\nNewer.\n")); done.Joined != "" || !done.New {
		t.Errorf("another change is published as %+v", done)
	}
	alone := h.joining(t, 5, newSetup)
	alone.Join = false
	if done := h.publish(t, alone); done.Joined != "" || !done.New {
		t.Errorf("one that is not to join is published as %+v", done)
	}
	h.Close(t, alone.Branch)
	// What others added to the branch is another change.
	h.Push(t, "docent/job_1", "guide/use.md", "# Use\n\nBetter.\n")
	own := h.publish(t, h.joining(t, 6, newSetup))
	if own.Joined != "" || !own.New {
		t.Errorf("beside a branch with more, it is published as %+v", own)
	}
	// One that was closed is not joined.
	h.Close(t, "docent/job_6")
	if done := h.publish(t, h.joining(t, 7, newSetup)); done.Joined != "" || !done.New {
		t.Errorf("after the other was closed, it is published as %+v", done)
	}
	// Further instructions go to the branch that was joined.
	more := Publication(h.Project, h.tip(t, "docent/job_7"), "# Set up\n\nNew, and more.\n")
	more.Job, more.Join = "job_8", true
	if done := h.publish(t, more); done.Joined != "" || done.New || len(h.Commits(t, "docent/job_7")) < 3 {
		t.Errorf("a further commit is published as %+v", done)
	}
	h.requests(t, "docent/job_7", 1)
}

func equalAtOnce(t *testing.T, h Host) {
	if h.Close == nil {
		t.Skip("this host has no pull requests")
	}
	const n = 8
	var wg background.Work
	done, errs := make([]forge.Published, n), make([]error, n)
	for i := range n {
		p := h.joining(t, i, newSetup)
		wg.Go("forge/forgetest.equalAtOnce", func() { done[i], errs[i] = h.Forge.Publish(t.Context(), p) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	opened := 0
	for _, d := range done {
		if d.New {
			opened++
		}
		if d.Link != done[0].Link || d.New == (d.Joined != "") {
			t.Errorf("published as %+v beside %+v", d, done[0])
		}
	}
	if opened != 1 {
		t.Errorf("%d pull requests were opened", opened)
	}
}
