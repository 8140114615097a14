package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"docent/bench"
	"docent/docs"
)

const (
	docentTarget = "docent"
	limitTarget  = "limit"
)

// Scripted is the model whose answers come at a given speed.
const Scripted = "scripted"

// Options say what is measured.
type Options struct {
	There *bench.Target // a server that is there already; nothing is started then

	Source    string // documentation of the server that is started; Docent's own if empty
	Model     string // Scripted, or one that every configuration has
	Script    bench.Script
	Limit     bool     // measure the bare server, too
	Questions []string // to warm the server up with
	Partition *Partition
	Streams   int // that the server takes at once, besides what the loads ask for

	Progress func(what string, done, total int)
}

// A Load is one measurement to be made: of any target, or of Docent's API only.
type Load struct {
	Name    string
	Streams int  // open at once at most, for the server's bounds
	Limit   bool // the bare server can serve it, too
	// Short is how many parts the answers of a second measurement have, which tells a turn's cost from a part's; 0 for
	// none.
	Short int
	// Stored is how many made-up conversations the server holds by then, at least, if Settled: it has done then what it does
	// after its start.
	Stored  int
	Settled bool
	Run     func(ctx context.Context, t bench.Target, progress bench.Progress) ([]bench.Result, error)
}

// A Lab measures loads on servers. With [Options].There it measures that one, else it starts a fresh process for each
// measurement.
type Lab struct {
	Options
	Server *Process // its directory and keys; nil if one is there already

	config string // of the server, without its model
	stored int    // conversations that were made up
}

// Open makes a data directory whose only project answers with the model that is asked for. It is to be closed also
// after an error.
func Open(ctx context.Context, o Options, loads []Load) (*Lab, error) {
	l := &Lab{Options: o}
	if o.There != nil {
		return l, nil
	}
	var err error
	if l.Server, err = NewProcess("bench"); err != nil {
		return l, err
	}
	l.Server.Partition = o.Partition
	source := o.Source
	if source == "" {
		source = filepath.Join(l.Server.Dir, "docs")
		if err := os.CopyFS(source, docs.Files); err != nil {
			return l, fmt.Errorf("copy the documentation: %w", err)
		}
	}
	most := 0
	for _, load := range loads {
		most = max(most, load.Streams)
	}
	most = max(most+most/10+1000, o.Streams)
	l.config = fmt.Sprintf(`log_level = "warn"
max_streams = %d
max_requests = %d
max_turns = %d
poll_interval = "0s"
stream_pace = %q
`, most, most, most, o.Script.Pace)
	l.config += "[limits]\nproject_hour = -1\nkey_month = -1\norg_hour = -1\nip_day = -1\n"
	l.Server.Config = filepath.Join(l.Server.Dir, "docent.toml")
	if err := l.setParts(o.Script.Parts); err != nil {
		return l, err
	}
	model := o.Model
	if model == Scripted {
		model = "bench"
	}
	_, err = l.Server.MakeProject(ctx, source, "--model", model)
	return l, err
}

// setParts sets how many parts the scripted model writes, of servers that are started from now on.
func (l *Lab) setParts(parts int) error {
	l.Script.Parts = parts
	if l.Server == nil {
		return nil
	}
	rate := 0.0 // as fast as they are taken
	if l.Script.Interval > 0 {
		rate = float64(time.Second) / float64(l.Script.Interval)
	}
	text := l.config + fmt.Sprintf(
		"[models.bench]\nprovider = \"scripted\"\nfirst_delay = %q\nrate = %g\nparts = %d\n",
		l.Script.Delay, rate, parts)
	return os.WriteFile(l.Server.Config, []byte(text), 0o600)
}

// Close ends the servers and removes what they left.
func (l *Lab) Close() {
	if l.Server != nil {
		l.Server.Close()
	}
}

// Measure puts every load on every target, in the given number of rounds.
func (l *Lab) Measure(ctx context.Context, loads []Load, rounds int) (results []bench.Result, err error) {
	for round := range rounds {
		for _, load := range loads {
			for _, name := range l.targets(load, round) {
				measured, err := l.measure(ctx, name, load, round)
				if err != nil {
					return results, err
				}
				results = append(results, measured...)
			}
		}
	}
	return results, nil
}

// targets are those to measure under a load, in an order that changes with the round: what one measurement leaves
// behind in the machine does not always meet the same other.
func (l *Lab) targets(load Load, round int) []string {
	if !l.Limit || !load.Limit {
		return []string{docentTarget}
	}
	names := []string{docentTarget, limitTarget}
	if round%2 == 1 {
		slices.Reverse(names)
	}
	return names
}

// measure puts one load on one target, and where the load says so the same with short answers.
func (l *Lab) measure(ctx context.Context, name string, load Load, round int) ([]bench.Result, error) {
	results, err := l.once(ctx, name, load, round)
	if err != nil || load.Short == 0 {
		return results, err
	}
	parts := l.Script.Parts
	if err := l.setParts(load.Short); err != nil {
		return nil, err
	}
	load.Name = fmt.Sprintf("%s (%d parts)", load.Name, load.Short)
	short, err := l.once(ctx, name, load, round)
	if err = errors.Join(err, l.setParts(parts)); err != nil {
		return nil, err
	}
	for i := range results {
		results[i].Divide(short[i])
		results[i].Lost += short[i].Lost
		results[i].Failures = append(results[i].Failures, short[i].Failures...)
	}
	return results, nil
}

// once puts one load on one target.
func (l *Lab) once(ctx context.Context, name string, load Load, round int) ([]bench.Result, error) {
	if more := load.Stored - l.stored; more > 0 {
		var made any
		err := l.Server.Run(ctx, &made, "bench", "seed", "--data", l.Server.Data(), "--config", l.Server.Config,
			"--project", ProjectID, "--conversations", strconv.Itoa(more), "--jobs", "0", "--seed", strconv.Itoa(load.Stored), "--json")
		if err != nil {
			return nil, err
		}
		l.stored = load.Stored
	}
	target, stop, err := l.start(ctx, name)
	if err != nil {
		return nil, err
	}
	defer stop()
	if load.Settled {
		if err := bench.Settle(ctx, target.URL); err != nil {
			return nil, err
		}
	}
	title := name + ", " + load.Name
	progress := func(open, ended, due int) {
		if due > 0 {
			l.Progress(title, ended, due)
		} else {
			l.Progress(fmt.Sprintf("%s, %d open", title, open), ended, 0)
		}
	}
	results, err := load.Run(ctx, target, progress)
	for i := range results {
		results[i].Target, results[i].Round = name, round+1
	}
	return results, err
}

// start starts a target's process, and ends it with stop.
func (l *Lab) start(ctx context.Context, name string) (t bench.Target, stop func(), err error) {
	switch {
	case l.There != nil:
		t = *l.There
		t.Name = name
		return t, func() {}, nil
	case name == limitTarget:
		return l.startLimit(ctx)
	}
	p := l.Server
	if err := p.Serve(ctx, "127.0.0.1:0"); err != nil {
		return t, nil, err
	}
	t = bench.Target{Name: name, URL: p.URL, Domain: Domain, Key: p.Readers, Project: ProjectID, Admin: p.Admin}
	if err := bench.Warm(ctx, t, l.Questions, l.Model != Scripted); err != nil {
		p.Stop()
		return t, nil, err
	}
	return t, p.Stop, nil
}

// startLimit starts the bare server.
func (l *Lab) startLimit(ctx context.Context) (t bench.Target, stop func(), err error) {
	p, err := NewProcess("bench")
	if err != nil {
		return t, nil, err
	}
	p.Partition = l.Partition
	address, err := FreeAddress()
	if err == nil {
		err = p.launch(ctx, address, "bench", "limit", "--listen", address, "--parts", fmt.Sprint(l.Script.Parts),
			"--interval", l.Script.Interval.String(), "--first-delay", l.Script.Delay.String(),
			"--pace", "0s")
	}
	if err != nil {
		p.Close()
		return t, nil, err
	}
	return bench.Target{Name: limitTarget, URL: p.URL, Domain: Domain}, p.Close, nil
}
