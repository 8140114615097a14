package journal

import (
	"bytes"
	"fmt"
	"slices"
)

// A Dropped is a stream that Drop took out of the journal.
type Dropped struct {
	Stream  string
	Why     string // the damage that was known of it; empty if there was none
	Records int    // that were taken out
}

// Drop takes streams out of the journal, damaged or not, with the mark that tells followers. Each record is handed to keep
// before it goes, and kept is called after the last one. It is one commit: if it fails, or keep or kept does, nothing has changed.
// Nothing else may use the journal meanwhile.
func (j *Journal) Drop(streams []string, keep func(Record) error, kept func() error) ([]Dropped, error) {
	var done []Dropped
	err := j.do(func(c *commit) error {
		d := &drop{c: c, keep: keep}
		for _, name := range streams {
			if err := d.stream(name); err != nil {
				return err
			}
		}
		done = d.done
		return kept()
	})
	if err != nil {
		return nil, fmt.Errorf("drop streams of journal %s: %w", j.path, err)
	}
	return done, nil
}

type drop struct {
	c    *commit
	keep func(Record) error
	done []Dropped
}

func (d *drop) stream(name string) error {
	key, t := []byte(name), d.c.j.tails[name]
	damage := d.c.j.damage[streamHash(name)]
	snapshot := bytes.Clone(d.c.buckets[nSnapshots].Get(key))
	if t == nil && snapshot == nil && damage.err == nil {
		return fmt.Errorf("there is no stream %q", name)
	}
	dropped := Dropped{Stream: name}
	if damage.err != nil {
		dropped.Why = damage.err.Error()
	}
	if snapshot != nil {
		dropped.Records++
		if err := d.keep(snapshotOf(key, snapshot)); err != nil {
			return err
		}
	}
	positions := slices.Clone(damage.pos)
	if t != nil {
		positions = append(positions, t.pos...)
	}
	slices.Sort(positions)
	for _, pos := range slices.Compact(positions) {
		v := d.c.buckets[nEvents].Get(positionKey(pos))
		if v == nil {
			continue
		}
		if err := d.keep(eventOf(positionKey(pos), v)); err != nil {
			return err
		}
		if err := d.c.deleteEvent(pos); err != nil {
			return err
		}
		d.c.state.trimmed = max(d.c.state.trimmed, pos)
		dropped.Records++
	}
	d.done = append(d.done, dropped)
	return d.c.remove(name)
}
