package main

import (
	"context"
	"time"

	"docent/actors"
	"docent/actors/job"
	"docent/actors/thread"
	"docent/api"
	"docent/automation"
	"docent/cluster"
	"docent/gaps/tracker"
	"docent/persistence/catalog"
	"docent/persistence/journal"
	"docent/web"
)

// wakeGap is the least time between two looks at what other nodes have changed.
const wakeGap = 200 * time.Millisecond

// together has this node act on what other nodes change, and on what it comes to do in their place. A server that is
// alone does nothing here.
func (a *app) together(ctx context.Context) {
	if a.nodes == nil {
		return
	}
	for ctx.Err() == nil {
		moved := a.nodes.Changed()
		a.automations.Wake()
		a.reports.Wake()
		a.reviews.Wake()
		a.hooks.Wake()
		a.updates.Wake()
		a.stores.pullsTurned()
		select {
		case <-ctx.Done():
			return
		case <-time.After(wakeGap):
		}
		select {
		case <-ctx.Done():
		case <-moved:
		case <-a.stores.catalog.Changes():
		}
	}
}

// here is which of what has a name this node does; nil where it does everything.
func (a *app) here() func(name string) bool {
	if a.nodes == nil {
		return nil
	}
	return a.nodes.Here
}

// knownJobs are the jobs of all nodes. What another one runs can be read here, from the journal; a request that works on
// several jobs is not sent to the node of one for that.
type knownJobs struct {
	*actors.Jobs
	nodes   *cluster.Members
	journal journal.Store
}

func (a *app) knownJobs() knownJobs { return knownJobs{a.system.Jobs(), a.nodes, a.journal} }

// Ask is actors.Jobs.Ask.
func (j knownJobs) Ask(ctx context.Context, id api.JobID, cmd job.Command) (job.Reply, error) {
	read, is := cmd.(job.Read)
	if !is || j.nodes.Here(job.Stream(id)) {
		return j.Jobs.Ask(ctx, id, cmd)
	}
	recovered, err := j.journal.Load(job.Stream(id))
	if err != nil {
		return job.Reply{}, err
	}
	row, ok, err := job.Row(id, recovered)
	if err == nil && (!ok || row.Project != read.Project) {
		err = api.ErrNotFound
	}
	return job.Reply{Row: row}, err
}

// knownThreads are the conversations of all nodes. One that another node runs is read from the journal, as it was when
// its last event was written: a page may show several.
type knownThreads struct {
	*actors.Threads
	nodes   *cluster.Members
	journal journal.Store
}

func (a *app) knownThreads() knownThreads {
	return knownThreads{a.system.Threads(), a.nodes, a.journal}
}

// Read is actors.Threads.Read.
func (k knownThreads) Read(ctx context.Context, id api.ThreadID, cmd thread.Read) (thread.Conversation, error) {
	if !api.ValidID(api.ThreadPrefix, string(id)) || k.nodes.Here(thread.Stream(id)) {
		return k.Threads.Read(ctx, id, cmd)
	}
	recovered, err := k.journal.Load(thread.Stream(id))
	if err != nil {
		return thread.Conversation{}, err
	}
	c, ok, err := thread.History(id, recovered)
	if err == nil && (!ok || c.Project != cmd.Project) {
		err = api.ErrNotFound
	}
	return c, err
}

// takeProof remembers for all nodes that the solution of a proof of work was used.
func takeProof(counts *catalog.Counts) func(context.Context, string, time.Duration) (bool, func(), error) {
	if counts == nil {
		return nil
	}
	return func(ctx context.Context, solution string, life time.Duration) (fresh bool, give func(), err error) {
		name := "proof " + solution
		wait, err := counts.Take(ctx, life, catalog.Bound{Name: name, Most: 1})
		give = func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_ = counts.Give(ctx, name) // it counts as used then
		}
		return wait == 0, give, err
	}
}

// amongNodes gives the pages what several nodes count and remember together.
func (a *app) amongNodes(deps *web.Deps) {
	if counts := a.stores.catalog.Counts(); counts != nil {
		deps.Counts = counts
	}
	if a.nodes != nil {
		deps.Setting = func(ctx context.Context) error { return a.nodes.Check(ctx, "task/setup") }
	}
}

// Each port with what serves it.
var (
	_ automation.Jobs = knownJobs{}
	_ tracker.Jobs    = knownJobs{}
	_ web.Counts      = (*catalog.Counts)(nil)
)
