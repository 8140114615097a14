package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"docent/bench"
	"docent/docs"
)

// A lab holds the servers under measurement: those that it starts itself, a fresh process for each measurement on a data
// directory that stays, or one that is there already.
type lab struct {
	*benchRun
	cmd    *cobra.Command
	server *demo // its directory and keys; nil with --url

	profiles string // address of the server's profiles; empty for none
	config   string // of the server, without its model

	aThread, aJob *copied // what the history of `bench history` is made of
}

const docentTarget = "docent"

// openLab makes a data directory whose only project answers with the model that is asked for.
func (b *benchRun) openLab(cmd *cobra.Command, loads []load) (*lab, error) {
	l := &lab{benchRun: b, cmd: cmd}
	b.lab = l
	if b.url != "" {
		return l, nil
	}
	l.server = &demo{cmd: cmd, out: io.Discard, shares: b.shares}
	d := l.server
	var err error
	if d.dir, err = os.MkdirTemp("", "docent-bench-"); err != nil {
		return nil, err
	}
	source := b.source
	if source == "" {
		source = filepath.Join(d.dir, "docs")
		if err := os.CopyFS(source, docs.Files); err != nil {
			return l, fmt.Errorf("copy the documentation: %w", err)
		}
	}
	most := 0
	for _, load := range loads {
		most = max(most, load.streams)
	}
	room := max(most+most/10+1000, DefaultConfig().MaxStreams)
	config := fmt.Sprintf("log_level = \"warn\"\nmax_streams = %d\nmax_requests = %d\nmax_turns = %d\npoll_interval = \"0s\"\nstream_pace = %q\n", room, room, room, b.pace)
	if b.profile != "" {
		if l.profiles, err = freeAddress(); err != nil {
			return l, err
		}
		config += fmt.Sprintf("profile_listen = %q\n", l.profiles)
	}
	config += "[limits]\nproject_hour = -1\nkey_month = -1\norg_hour = -1\nip_day = -1\n"
	d.config = filepath.Join(d.dir, "docent.toml")
	l.config = config
	if err := l.script(b.parts); err != nil {
		return l, err
	}
	model := b.model
	if model == scriptedBench {
		model = "bench"
	}
	return l, d.makeProject(cmd.Context(), source, "--model", model)
}

// script sets how many parts the scripted model writes, of servers that are started from now on.
func (l *lab) script(parts int) error {
	l.parts = parts
	if l.server == nil {
		return nil
	}
	text := l.config + fmt.Sprintf("[models.bench]\nprovider = \"scripted\"\nfirst_delay = %q\nrate = %g\njitter = %q\nparts = %d\n",
		l.firstDelay, rate(l.interval), l.jitter, parts)
	return os.WriteFile(l.server.config, []byte(text), 0o600)
}

func (l *lab) cleanUp() {
	if l.server != nil {
		l.server.cleanUp()
	}
}

// targets are those to measure under a load, in an order that changes with the round: what one measurement leaves behind
// in the machine does not always meet the same other.
func (l *lab) targets(load load, round int) []string {
	if !l.limit || !load.limit {
		return []string{docentTarget}
	}
	names := []string{docentTarget, "limit"}
	if round%2 == 1 {
		slices.Reverse(names)
	}
	return names
}

// measure puts one load on one target, and where the load says so the same with short answers.
func (l *lab) measure(ctx context.Context, name string, load load, round int) ([]bench.Result, error) {
	results, err := l.once(ctx, name, load, round)
	if err != nil || load.short == 0 {
		return results, err
	}
	parts := l.parts
	if err := l.script(load.short); err != nil {
		return nil, err
	}
	short, err := l.once(ctx, name, load.named(fmt.Sprintf("%s (%d parts)", load.name, load.short)), round)
	if err = errors.Join(err, l.script(parts)); err != nil {
		return nil, err
	}
	for i := range results {
		results[i].Divide(short[i])
		results[i].Lost += short[i].Lost
		results[i].Failures = append(results[i].Failures, short[i].Failures...)
	}
	return results, nil
}

// named is the load under another name.
func (l load) named(name string) load {
	l.name = name
	return l
}

// once puts one load on one target.
func (l *lab) once(ctx context.Context, name string, load load, round int) (results []bench.Result, err error) {
	if load.before != nil {
		if err := load.before(ctx); err != nil {
			return nil, err
		}
	}
	alone, err := l.startNeighbours()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, alone()) }()
	target, stop, err := l.start(ctx, name)
	if err != nil {
		return nil, err
	}
	defer stop()
	title := name + ", " + load.name
	progress := func(open, ended, due int) {
		if due > 0 {
			l.progress(title, ended, due)
		} else {
			l.progress(fmt.Sprintf("%s, %d open", title, open), ended, 0)
		}
	}
	profiled, err := l.startProfile(ctx, target, fmt.Sprintf("%s-%s-%d", name, load.name, round+1))
	if err != nil {
		return nil, err
	}
	results, err = load.run(ctx, target, progress)
	for i := range results {
		results[i].Target, results[i].Round = name, round+1
	}
	return results, errors.Join(err, profiled())
}

// restart kills the server that was started, and starts it again at the same address.
func (l *lab) restart(ctx context.Context) error {
	listen := strings.TrimPrefix(l.server.url, "http://")
	l.server.kill()
	return l.server.start(ctx, listen)
}

// start starts a target's process, and ends it with stop.
func (l *lab) start(ctx context.Context, name string) (t bench.Target, stop func(), err error) {
	if l.url != "" {
		return bench.Target{Name: name, URL: l.url, Domain: l.domain, Key: l.key, Project: l.project, Admin: l.adminKey}, func() {}, nil
	}
	if name != docentTarget {
		bare := &demo{cmd: l.cmd, out: io.Discard, shares: l.shares}
		if bare.dir, err = os.MkdirTemp("", "docent-bench-"); err != nil {
			return t, nil, err
		}
		limitPace := "0s"
		if l.pacedLimit {
			limitPace = l.pace.String()
		}
		address, err := freeAddress()
		if err == nil {
			err = bare.launch(ctx, address, "bench", "limit", "--listen", address, "--parts", fmt.Sprint(l.parts),
				"--interval", l.interval.String(), "--first-delay", l.firstDelay.String(), fmt.Sprintf("--v1=%t", l.v1), "--pace", limitPace)
		}
		if err != nil {
			bare.cleanUp()
			return t, nil, err
		}
		return bench.Target{Name: name, URL: bare.url, Domain: demoDomain}, bare.cleanUp, nil
	}
	d := l.server
	if err := d.start(ctx, "127.0.0.1:0"); err != nil {
		return t, nil, err
	}
	t = bench.Target{Name: name, URL: d.url, Domain: demoDomain, Key: d.assistant, Project: demoProject, Admin: d.admin}
	questions, err := l.readQuestions()
	if err == nil && !l.cold {
		err = bench.Warm(ctx, t, l.form(), questions, !l.scripted())
	}
	if err != nil {
		d.stop()
		return t, nil, err
	}
	return t, d.stop, nil
}

// stop ends the server process and leaves its data.
func (d *demo) stop() {
	if d.server == nil {
		return
	}
	_ = d.server.Process.Signal(os.Interrupt)
	select {
	case <-d.ended:
		d.server = nil
	case <-time.After(10 * time.Second):
		d.kill()
	}
}

// rate is how many pieces a second an interval makes; 0, as fast as they are taken, where there is none.
func rate(interval time.Duration) float64 {
	if interval <= 0 {
		return 0
	}
	return float64(time.Second) / float64(interval)
}

// makeProject adds the one project and makes its keys.
func (d *demo) makeProject(ctx context.Context, source string, flags ...string) error {
	args := append([]string{"project", "add", "--data", d.data(), "--config", d.config, "--id", demoProject, "--domain", demoDomain,
		"--source", source, "--site-url", "https://" + demoDomain, "--json"}, flags...)
	if err := d.docent(ctx, &d.project, args...); err != nil {
		return err
	}
	for kind, secret := range map[string]*string{"admin": &d.admin, "assistant": &d.assistant} {
		var made keyMade
		if err := d.docent(ctx, &made, "key", "create", "--data", d.data(), "--config", d.config, "--project", demoProject, "--kind", kind, "--json"); err != nil {
			return err
		}
		*secret = made.Key
	}
	return nil
}
