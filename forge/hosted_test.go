package forge_test

import (
	"testing"
	"time"

	"docent/api"
	"docent/forge"
	"docent/forge/forgetest"
)

var hostKinds = []api.HostKind{api.HostGitHub, api.HostGitLab, api.HostGitea}

const hostToken = "hst_TheTokenThatNobodyMaySee"

// onHosts runs a test on each kind of code host.
func onHosts(t *testing.T, run func(t *testing.T, s *forgetest.StandIn, r *rig)) {
	for _, kind := range hostKinds {
		t.Run(string(kind), func(t *testing.T) {
			s, p := standIn(t, kind)
			run(t, s, open(t, t.TempDir(), p, &forgetest.Pulls{}, quick))
		})
	}
}

func standIn(t *testing.T, kind api.HostKind) (*forgetest.StandIn, api.Project) {
	t.Helper()
	s := forgetest.NewStandIn(t)
	s.Tokens = []string{hostToken}
	t.Setenv("DOCENT_TEST_TOKEN", hostToken)
	return s, s.Project(kind, "DOCENT_TEST_TOKEN")
}

var quick = forge.Options{WriteGap: time.Nanosecond}

func TestCodeHostsKeepTheContract(t *testing.T) {
	for _, kind := range hostKinds {
		t.Run(string(kind), func(t *testing.T) {
			forgetest.Test(t, func(t *testing.T) forgetest.Host {
				s, p := standIn(t, kind)
				r := open(t, t.TempDir(), p, &forgetest.Pulls{}, quick)
				t.Cleanup(func() {
					s.Fsck(t)
					if !t.Skipped() {
						fsck(t, r.repository())
					}
				})
				return s.Host(r.Hub, p)
			})
		})
	}
}
