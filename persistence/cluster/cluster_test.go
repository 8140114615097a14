package cluster_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"docent/persistence/cluster"
)

// What is stored by shard is read by other versions.
func TestShardsOfNamesDoNotChange(t *testing.T) {
	for name, want := range map[string]int{"": 193, "job/a": 24, "thread/b": 50} {
		if got := cluster.Shard(name); got != want {
			t.Errorf("Shard(%q) = %d, want %d", name, got, want)
		}
	}
}

func TestNamesSpreadOverShards(t *testing.T) {
	var counts [cluster.Shards]int
	const each = 100
	for i := range cluster.Shards * each {
		counts[cluster.Shard(fmt.Sprintf("thread/thr_%d", i))]++
	}
	for shard, n := range counts {
		if n < each/2 || n > each*2 {
			t.Errorf("shard %d has %d names of %d on average", shard, n, each)
		}
	}
}

func TestTheFirstNoteOfARequestCounts(t *testing.T) {
	ctx, slot := cluster.WithSlot(context.Background())
	if slot.Elsewhere() != nil {
		t.Fatal("a new slot holds a note")
	}
	cluster.Note(ctx, &cluster.ElsewhereError{Name: "job/a"})
	cluster.Note(ctx, &cluster.ElsewhereError{Name: "job/b"})
	if got := slot.Elsewhere(); got == nil || got.Name != "job/a" {
		t.Errorf("noted: %v", got)
	}
	cluster.Note(context.Background(), &cluster.ElsewhereError{}) // without a slot it is nobody's
}

// TestMain runs many tests side by side, also on few processors: they wait for beats.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
