package server

import (
	"context"
	"errors"
	"time"

	"docent/actors"
	"docent/actors/job"
	"docent/actors/thread"
	"docent/api"
	"docent/persistence/catalog"
	"docent/persistence/cluster"
	"docent/persistence/journal"
	"docent/web"
)

// startCatchUp is how long a node that starts reads what others have read while it was away, before it takes requests.
const startCatchUp = 20 * time.Second

// catchUp brings what this node answers from to what the others do.
func (a *Server) catchUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, startCatchUp)
	defer cancel()
	if err := a.Stores.Source.CatchUp(ctx); err != nil && !errors.Is(err, context.Canceled) {
		a.Log.Warn("what this node answers from is not as new yet as what others do", "error", err)
	}
}

// wakeGap is the least time between two looks at what other nodes have changed.
const wakeGap = 200 * time.Millisecond

// together has this node act on what is pending at its start, on what other nodes change, and on what it comes to do in
// their place.
func (a *Server) together(ctx context.Context) {
	for ctx.Err() == nil {
		moved := a.nodes.Changed()
		a.automations.Wake()
		a.reports.Wake()
		a.reviews.Wake()
		a.hooks.Wake()
		a.Updates.Wake()
		a.chats.slack.Wake()
		a.Stores.PullsTurned()
		for _, t := range a.Stores.Tasks {
			a.System.Tasks().Start(t)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wakeGap):
		}
		select {
		case <-ctx.Done():
		case <-moved:
		case <-a.Stores.Catalog.Changes():
		}
	}
}

// knownJobs are the jobs of all nodes. What another one runs can be read here, from the journal; a request that works on
// several jobs is not sent to the node of one for that.
type knownJobs struct {
	*actors.Jobs
	nodes   cluster.Ownership
	journal journal.Store
}

func (a *Server) knownJobs() knownJobs { return knownJobs{a.System.Jobs(), a.nodes, a.Journal} }

// Ask is actors.Jobs.Ask.
func (j knownJobs) Ask(ctx context.Context, id api.JobID, cmd job.Command) (job.Reply, error) {
	read, is := cmd.(job.Read)
	if !is || j.nodes.Owns(job.Stream(id)) {
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
	nodes   cluster.Ownership
	journal journal.Store
}

func (a *Server) knownThreads() knownThreads {
	return knownThreads{a.System.Threads(), a.nodes, a.Journal}
}

// Read is actors.Threads.Read.
func (k knownThreads) Read(ctx context.Context, id api.ThreadID, cmd thread.Read) (thread.Conversation, error) {
	if !api.ValidID(api.ThreadPrefix, string(id)) || k.nodes.Owns(thread.Stream(id)) {
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
func (a *Server) amongNodes(deps *web.Deps) {
	deps.Counts = a.counts
	deps.Setting = func(ctx context.Context) error { return a.nodes.Check(ctx, "task/setup") }
}
