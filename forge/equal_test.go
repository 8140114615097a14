package forge_test

import (
	"errors"
	"testing"

	"docent/api"
	"docent/forge"
	"docent/forge/forgetest"
)

// TestAnInterruptedPublicationJoinsTheOneThatCameMeanwhile lets a job's publication break off between its branch and its
// pull request, and another job publish the same before the first one goes on.
func TestAnInterruptedPublicationJoinsTheOneThatCameMeanwhile(t *testing.T) {
	for _, step := range []string{"objects", "branch", "store latest", "store find", "store add"} {
		t.Run(step, func(t *testing.T) {
			armed := false
			fault := func(at string) error {
				if at == step && armed {
					armed = false
					return errStop
				}
				return nil
			}
			folder := t.TempDir()
			write(t, folder, forgetest.Files)
			p, pulls := project(folder), &forgetest.Pulls{Fault: func(call string) error { return fault("store " + call) }}
			r := open(t, t.TempDir(), p, pulls, forge.Failing(forge.Options{}, fault))
			publication := func(branch string) forge.Publication {
				q := forgetest.Publication(p, r.tip(t, branch), "# Set up\n\nNew.\n")
				q.Join = true
				return q
			}
			first, second := publication("docent/job_1"), publication("docent/job_2")
			armed = true
			if _, err := r.Publish(t.Context(), first); !errors.Is(err, errStop) {
				t.Fatalf("the first publication: %v", err)
			}
			other, err := r.Publish(t.Context(), second)
			if err != nil || !other.New {
				t.Fatalf("the second: %+v, %v", other, err)
			}
			done, err := r.Publish(t.Context(), first)
			if err != nil || done.Joined != second.Branch || done.Link != other.Link {
				t.Errorf("the first goes on as %+v, %v", done, err)
			}
			if list, err := r.Pulls(t.Context(), p.ID, api.PullOpen); err != nil || len(list) != 1 {
				t.Errorf("open are %+v, %v", list, err)
			}
		})
	}
}
