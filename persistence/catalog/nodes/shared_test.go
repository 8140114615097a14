package nodes_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"docent/api"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/catalog/nodes"
)

// several opens what several processes share in one database.
func several(t *testing.T, n int) []*nodes.Shared {
	t.Helper()
	dsn := catalogtest.Postgres(t)
	out := make([]*nodes.Shared, n)
	for i := range out {
		c, err := catalog.Open(t.Context(), dsn, catalog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if out[i], err = c.Shared(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestOneNodeSharesNothing(t *testing.T) {
	t.Parallel()
	c, err := catalog.Open(t.Context(), catalogtest.SQLite(t), catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Shared(t.Context()); err == nil {
		t.Error("values are shared in SQLite")
	}
}

// TestALargeValueIsWholeOnEveryNode stores, replaces and removes values of several chunks.
func TestALargeValueIsWholeOnEveryNode(t *testing.T) {
	t.Parallel()
	n := several(t, 2)
	content := func(size int) []byte {
		out := make([]byte, size)
		for i := range out {
			out[i] = byte(rand.Uint32())
		}
		return out
	}
	for _, size := range []int{0, 1, nodes.BlobChunk, 2*nodes.BlobChunk + 17, nodes.BlobChunk - 1} {
		want := content(size)
		put, err := n[0].Put(t.Context(), "upload/docs", bytes.NewReader(want), nil)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		b, err := n[1].Get(t.Context(), "upload/docs", &got)
		if err != nil || !bytes.Equal(got.Bytes(), want) || b.Version != put.Version || b.Hash != put.Hash || b.Size != int64(size) {
			t.Fatalf("of %d bytes there are %d, %+v instead of %+v, %v", size, got.Len(), b, put, err)
		}
	}
	var chunks int
	if err := n[0].DB().Write.QueryRow("SELECT count(*) FROM shared_chunks").Scan(&chunks); err != nil || chunks != 1 {
		t.Errorf("%d chunks are kept of a value of one, %v", chunks, err)
	}
	if _, err := n[0].DB().Write.Exec("UPDATE shared_chunks SET data = 'other'"); err != nil {
		t.Fatal(err)
	}
	if _, err := n[1].Read(t.Context(), "upload/docs"); !errors.Is(err, catalog.ErrCorrupt) {
		t.Errorf("a damaged value is read: %v", err)
	}
	if list, err := n[1].Blobs(t.Context(), "upload/"); err != nil || len(list) != 1 || list[0].Name != "upload/docs" {
		t.Errorf("%+v, %v", list, err)
	}
	if err := n[1].Remove(t.Context(), "upload/docs"); err != nil {
		t.Fatal(err)
	}
	if _, err := n[0].Blob(t.Context(), "upload/docs"); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("what was removed is there: %v", err)
	}
	if _, err := n[0].Read(t.Context(), "upload/docs"); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("what was removed is read: %v", err)
	}
}

// TestValuesStoredAtOnceReplaceEachOtherWhole has nodes store under one name while another reads.
func TestValuesStoredAtOnceReplaceEachOtherWhole(t *testing.T) {
	t.Parallel()
	n := several(t, 3)
	var work sync.WaitGroup
	for i, s := range n[:2] {
		value := bytes.Repeat([]byte{byte('a' + i)}, 2*nodes.BlobChunk+i)
		work.Go(func() {
			for range 5 {
				if _, err := s.Put(t.Context(), "x", bytes.NewReader(value), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 10 {
		got, err := n[2].Read(t.Context(), "x")
		if errors.Is(err, api.ErrNotFound) {
			continue
		}
		if err != nil || bytes.Count(got, got[:1]) != len(got) || len(got) != 2*nodes.BlobChunk+int(got[0]-'a') {
			t.Errorf("%d bytes of a mixture, %v", len(got), err)
		}
	}
	work.Wait()
	var chunks int
	if err := n[0].DB().Write.QueryRow("SELECT count(*) FROM shared_chunks").Scan(&chunks); err != nil || chunks > 3 {
		t.Errorf("%d chunks are left, %v", chunks, err)
	}
}

// TestOneProcessIsAtWorkAtATime has two wait for the same work, and one that does not wait.
func TestOneProcessIsAtWorkAtATime(t *testing.T) {
	t.Parallel()
	n := several(t, 2)
	began, end := make(chan struct{}), make(chan struct{})
	var first sync.WaitGroup
	first.Go(func() {
		_, err := n[0].Alone(t.Context(), "w", true, func(context.Context, *nodes.Lease) error {
			close(began)
			<-end
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-began
	if ran, err := n[1].Alone(t.Context(), "w", false, func(context.Context, *nodes.Lease) error { return nil }); ran || err != nil {
		t.Errorf("ran beside the other: %v, %v", ran, err)
	}
	if ran, err := n[1].Alone(t.Context(), "another", false, func(context.Context, *nodes.Lease) error { return nil }); !ran || err != nil {
		t.Errorf("other work waits: %v, %v", ran, err)
	}
	close(end)
	if ran, err := n[1].Alone(t.Context(), "w", true, func(context.Context, *nodes.Lease) error { return nil }); !ran || err != nil {
		t.Errorf("did not follow: %v, %v", ran, err)
	}
	first.Wait()
}

// TestANodeWhoseWorkWasTakenStoresNothing lets a lease end as that of a node that was stopped, while it goes on.
func TestANodeWhoseWorkWasTakenStoresNothing(t *testing.T) {
	t.Parallel()
	n := several(t, 2)
	_, err := n[0].Alone(t.Context(), "w", true, func(ctx context.Context, held *nodes.Lease) error {
		if _, err := n[0].Put(ctx, "x", bytes.NewReader([]byte("mine")), held); err != nil {
			t.Errorf("what holds its lease cannot store: %v", err)
		}
		if _, err := n[1].DB().Write.Exec("UPDATE shared_leases SET ends_at = now() - interval '1 second'"); err != nil {
			t.Error(err)
		}
		// Not in this one's context, which ends once it finds that its lease is lost.
		ran, err := n[1].Alone(t.Context(), "w", true, func(ctx context.Context, held *nodes.Lease) error {
			_, err := n[1].Put(ctx, "x", bytes.NewReader([]byte("theirs")), held)
			return err
		})
		if !ran || err != nil {
			t.Errorf("nobody takes over: %v, %v", ran, err)
		}
		_, err = n[0].Put(ctx, "x", bytes.NewReader([]byte("late")), held)
		return err
	})
	if !errors.Is(err, nodes.ErrLeaseLost) {
		t.Errorf("stored late: %v", err)
	}
	if got, err := n[0].Read(t.Context(), "x"); string(got) != "theirs" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestALeaseThatCannotBeRenewedEndsItsWork waits for one renewal.
func TestALeaseThatCannotBeRenewedEndsItsWork(t *testing.T) {
	t.Parallel()
	n := several(t, 1)[0]
	_, err := n.Alone(t.Context(), "w", true, func(ctx context.Context, _ *nodes.Lease) error {
		if _, err := n.DB().Write.Exec("DELETE FROM shared_leases"); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(10 * nodes.LeaseRenew):
			return errors.New("the work goes on")
		}
	})
	if !errors.Is(err, nodes.ErrLeaseLost) {
		t.Error(err)
	}
}

// TestNodesTellWhatTheyServe follows a source over two changes.
func TestNodesTellWhatTheyServe(t *testing.T) {
	t.Parallel()
	n := several(t, 2)
	before, err := n[0].HeadsNow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first, err := n[0].Turn(t.Context(), "docs", "c1")
	if err != nil {
		t.Fatal(err)
	}
	second, err := n[1].Turn(t.Context(), "docs", "c1") // read again at the same commit
	if err != nil || second <= first {
		t.Fatalf("%d after %d, %v", second, first, err)
	}
	if now, err := n[0].HeadsNow(t.Context()); err != nil || now == before {
		t.Errorf("a change is not seen: %v, %v", now, err)
	}
	for node, number := range map[string]int64{"a": second, "b": first} {
		if err := n[0].Serves(t.Context(), node, "docs", number); err != nil {
			t.Fatal(err)
		}
	}
	if err := n[0].Serves(t.Context(), "a", "docs", first); err != nil { // told late
		t.Fatal(err)
	}
	if got, err := n[1].Serving(t.Context(), "docs", second); err != nil || !slices.Equal(got, []string{"a"}) {
		t.Errorf("%v, %v", got, err)
	}
	if err := n[0].ForgetNodes(t.Context(), []string{"b"}); err != nil {
		t.Fatal(err)
	}
	if got, err := n[1].Serving(t.Context(), "docs", first); err != nil || !slices.Equal(got, []string{"b"}) {
		t.Errorf("after one has gone: %v, %v", got, err)
	}
	if err := n[0].ForgetSource(t.Context(), "docs"); err != nil {
		t.Fatal(err)
	}
	if heads, err := n[1].Heads(t.Context()); err != nil || len(heads) != 0 {
		t.Errorf("%v, %v", heads, err)
	}
}
