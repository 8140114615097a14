package server

import (
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"docent/actors"
	"docent/agent"
	"docent/cmd/docent/config"
	"docent/model/registry"
	"docent/persistence/catalog"
	"docent/persistence/cluster"
	"docent/persistence/journal"
	"docent/search/sources"
)

// The actors have no defaults of what can be set, and do not start without it.
func TestTheActorsTakeEachLimitFromASetting(t *testing.T) {
	c := config.Default()
	for _, name := range []string{"RunningJobs", "OpenJobs", "RunningTurns", "Idle", "RunLimit", "TurnLimit"} {
		deps := actorLimits(c)
		deps.Journal, deps.Projects, deps.Log = new(journal.Journal), new(catalog.Catalog), slog.New(slog.DiscardHandler)
		deps.Editor, deps.Forge, deps.Searcher, deps.Model = new(agent.Agent), treeForge{}, sources.Documents{},
			new(registry.Registry)
		deps.Place = cluster.Single{}
		reflect.ValueOf(&deps).Elem().FieldByName(name).SetZero()
		if _, err := actors.Start(t.Context(), deps); err == nil ||
			!strings.Contains(err.Error(), "Deps."+name+" is not set") {
			t.Errorf("without %s the actors start: %v", name, err)
		}
		if reflect.ValueOf(actorLimits(c)).FieldByName(name).IsZero() {
			t.Errorf("no setting says %s", name)
		}
	}
}
