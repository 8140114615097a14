package router_test

import (
	"fmt"
	"testing"

	"docent/actors/job"
	"docent/api"
)

// fakeModels knows all names but one, and two aliases.
type fakeModels struct {
	local bool // it is this machine
}

func (m fakeModels) Local(string) bool { return m.local }

func (fakeModels) Resolve(name string) (string, error) {
	switch name {
	case "nobody":
		return "", &api.InvalidError{Problems: []api.Problem{{Field: "model",
			Message: fmt.Sprintf("no model is named %q", name)}}}
	case "sonnet":
		return "", nil
	case "opus":
		return "large", nil
	}
	return name, nil
}

func TestAJobKeepsTheModelBehindAnAlias(t *testing.T) {
	for name, want := range map[string]string{"sonnet": "", "opus": "large", "small": "small"} {
		h := build(t)
		h.json(201, "POST", "/v2/agent/acme/job", h.admin, fmt.Sprintf(`{"prompt":"p","model":%q}`, name))
		if got := h.jobs.last.(job.Create).Model; got != want {
			t.Errorf("%s: the job has %q", name, got)
		}
	}
}
