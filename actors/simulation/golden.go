package simulation

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"docent/actors/persistent"
	"docent/persistence/journal"
)

// Golden is what a golden file holds; with -update that is what there is now.
func Golden(t *testing.T, name, now string) string {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(stored)
}

// Stored holds a kind to reading events and a snapshot, of a state after seq events, that an earlier program wrote.
// When it fails, a type that is stored has changed, perhaps in another package: give the event a new name and keep
// the old form.
func Stored[S, E any](t *testing.T, kind *persistent.Kind[S, E], id string, events []E, seq uint64, full S,
	normal func(S) S) {
	t.Helper()
	var now strings.Builder
	for _, ev := range events {
		e, err := kind.Codec.Encode(ev)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&now, "%s %x\n", e.Type, e.Data)
	}
	data, err := kind.Snapshot(&full)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&now, "snapshot %x\n", data)
	for i, line := range strings.Split(strings.TrimSpace(Golden(t, "stored.txt", now.String())), "\n") {
		var name string
		var data []byte
		if _, err := fmt.Sscanf(line, "%s %x", &name, &data); err != nil {
			t.Fatal(err)
		}
		if name == "snapshot" {
			got, err := kind.Restore(id, seq, data)
			if err != nil || !reflect.DeepEqual(normal(got), normal(full)) {
				t.Errorf("the snapshot is read as\n%+v, %v\nnot as\n%+v", got, err, full)
			}
			continue
		}
		got, err := kind.Codec.Decode(journal.Event{Type: name, Data: data})
		if err != nil || !reflect.DeepEqual(got, events[i]) {
			t.Errorf("%s is read as\n%+v, %v\nnot as\n%+v", name, got, err, events[i])
		}
	}
}
