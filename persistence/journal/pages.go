package journal

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"docent/internal/background"
)

// bbolt's pages carry no checksums; a damaged one makes bbolt panic, in a goroutine of its own when the file is opened,
// follow a wrong page, or overlook entries. So the journal walks over all pages itself before bbolt does: every page
// must be what its parent says, be reached once, keep its entries inside itself and in order; pages that are not
// reached must be free. It costs less than bbolt's own walk, and it counts the entries of each bucket.
//
// The layout is bbolt's (internal/common), version 2.
const (
	pageHead    = 16 // id 8, flags 2, count 2, overflow 4
	pageElement = 16 // of a branch: pos 4, ksize 4, page 8; of a leaf: flags 4, pos 4, ksize 4, vsize 4

	pageBranch   = 0x01
	pageLeaf     = 0x02
	pageMeta     = 0x04
	pageFreelist = 0x10

	leafBucket = 0x01
	inBucket   = 16 // root 8, sequence 8

	boltMagic   = 0xED0CDAED
	boltVersion = 2
	noFreelist  = ^uint64(0)
)

// order is that of the machine, as in bbolt: its files do not move between machines of different byte orders, and so
// neither does a journal.
var order = binary.NativeEndian

type boltMeta struct {
	pageSize             int
	root, freelist, high uint64
	tx                   uint64
}

// verifyFile walks over the file, if there is one.
func verifyFile(path string, o *Options) (*pageWalk, error) {
	st, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) || (err == nil && st.Size() == 0) {
		return &pageWalk{}, nil
	}
	if err != nil {
		return nil, err
	}
	// Opened for reading, bbolt takes the lock and looks at the meta pages alone.
	var db *bbolt.DB
	err = guard(func() error {
		db, err = bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: o.LockTimeout, OpenFile: o.OpenFile})
		return err
	})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, lockError(err)
	case errors.Is(err, os.ErrPermission):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	defer db.Close()
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, unmap, err := mapFile(f)
	if err != nil {
		return nil, err
	}
	defer unmap()
	w := &pageWalk{data: data}
	err = guard(func() error { return w.file() })
	w.data = nil
	if err != nil {
		if errors.Is(err, ErrCorrupt) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return w, nil
}

type pageWalk struct {
	data []byte
	meta boltMeta
	seen []uint64      // a bit for each page, set atomically: branches of the trees are walked at the same time
	free chan struct{} // holds one for each goroutine beside the first that may be started
	// By bucket: the number of entries, and the keys that are not those which their values belong to.
	entries     map[string]uint64
	damagedKeys map[string][]string
}

// An extent is what a tree, or a part of it, consists of.
type extent struct{ pages, entries uint64 }

func readMeta(page []byte) (boltMeta, error) {
	if len(page) < pageHead+64 {
		return boltMeta{}, errors.New("a meta page is cut off")
	}
	b := page[pageHead:]
	m := boltMeta{
		pageSize: int(order.Uint32(b[8:])),
		root:     order.Uint64(b[16:]), freelist: order.Uint64(b[32:]), high: order.Uint64(b[40:]), tx: order.Uint64(b[48:]),
	}
	sum := fnv.New64a()
	sum.Write(b[:56])
	if order.Uint32(b) != boltMagic || order.Uint32(b[4:]) != boltVersion || sum.Sum64() != order.Uint64(b[56:]) {
		return m, errors.New("a meta page is damaged, and so the last commit may be missing")
	}
	return m, nil
}

// file walks over the whole file.
func (w *pageWalk) file() error {
	if err := w.readMetas(); err != nil {
		return err
	}
	w.seen = make([]uint64, w.meta.high/64+1)
	w.entries, w.damagedKeys = make(map[string]uint64), make(map[string][]string)
	w.free = make(chan struct{}, runtime.GOMAXPROCS(0)-1)
	used := uint64(2)
	top, err := w.tree(w.meta.root, nil, nil, 0, leafBucket, func(name, value []byte) error {
		of, err := w.bucket(string(name), value)
		if err != nil {
			return fmt.Errorf("bucket %q: %w", name, err)
		}
		used += of.pages
		w.entries[string(name)] = of.entries
		return nil
	})
	if err != nil {
		return err
	}
	return w.freePages(used + top.pages)
}

// readMetas reads both meta pages and takes that of the last commit.
func (w *pageWalk) readMetas() error {
	m0, err0 := readMeta(w.data)
	size := m0.pageSize
	if err0 != nil {
		size = os.Getpagesize() // as bbolt guesses
	}
	if size < 1024 || size > 1<<24 || len(w.data) < 2*size {
		return errors.New("the file is cut off")
	}
	m1, err1 := readMeta(w.data[size:])
	// The last commit may be in a damaged one, or an older one: which it is cannot be told.
	if err := cmp.Or(err0, err1); err != nil {
		return err
	}
	if w.meta = m0; m1.tx >= m0.tx {
		w.meta = m1
	}
	for id := range uint64(2) {
		if got := order.Uint64(w.data[int(id)*size:]); got != id {
			return fmt.Errorf("meta page %d calls itself %d", id, got)
		}
	}
	if w.meta.pageSize != size || w.meta.high < 4 || w.meta.high > uint64(len(w.data)/size) {
		return fmt.Errorf("the file is cut off: it has %d bytes for %d pages of %d",
			len(w.data), w.meta.high, w.meta.pageSize)
	}
	return nil
}

// bucket walks over the bucket that stands under a name, and notes the keys that do not belong to their values.
func (w *pageWalk) bucket(name string, value []byte) (of extent, err error) {
	if len(value) < inBucket {
		return of, errors.New("it is cut off")
	}
	var mu sync.Mutex
	var damaged []string
	entry := func(key, value []byte) error {
		if !keySealed(key, value) {
			mu.Lock()
			damaged = append(damaged, string(key))
			mu.Unlock()
		}
		return nil
	}
	if root := order.Uint64(value); root != 0 {
		of, err = w.tree(root, nil, nil, 0, 0, entry)
	} else if page := value[inBucket:]; len(page) < pageHead || order.Uint16(page[8:]) != pageLeaf {
		err = errors.New("it is damaged")
	} else { // it stands in its parent's page
		of.entries = uint64(order.Uint16(page[10:]))
		err = w.leaf(page, nil, nil, 0, entry)
	}
	if len(damaged) > 0 {
		slices.Sort(damaged)
		w.damagedKeys[name] = damaged
	}
	return of, err
}

// page checks a page's head, and that it is reached for the first time.
func (w *pageWalk) page(id uint64) (page []byte, pages uint64, err error) {
	size := uint64(w.meta.pageSize)
	if id < 2 || id >= w.meta.high {
		return nil, 0, fmt.Errorf("page %d is outside the file", id)
	}
	page = w.data[id*size:]
	if got := order.Uint64(page); got != id {
		return nil, 0, fmt.Errorf("page %d calls itself %d", id, got)
	}
	pages = uint64(order.Uint32(page[12:])) + 1
	if pages > w.meta.high-id {
		return nil, 0, fmt.Errorf("page %d is longer than the file", id)
	}
	for p := id; p < id+pages; p++ {
		if bit := uint64(1) << (p % 64); atomic.OrUint64(&w.seen[p/64], bit)&bit != 0 {
			return nil, 0, fmt.Errorf("page %d is used twice", p)
		}
	}
	return page[:pages*size], pages, nil
}

// tree walks over the pages below id, whose keys must lie from low on and before high; nil for no bound. Its entries
// must have the given flags: those at the top are buckets, those below are not. It calls f for each entry, for those
// below from several goroutines.
func (w *pageWalk) tree(id uint64, low, high []byte, depth int, flags uint32, f func(key, value []byte) error) (
	extent, error) {
	page, pages, err := w.page(id)
	if err != nil {
		return extent{}, err
	}
	of := extent{pages: pages}
	count := int(order.Uint16(page[10:]))
	switch order.Uint16(page[8:]) {
	case pageLeaf:
		if err := w.leaf(page, low, high, flags, f); err != nil {
			return of, fmt.Errorf("page %d: %w", id, err)
		}
		of.entries = uint64(count)
		return of, nil
	case pageBranch:
	default:
		return of, fmt.Errorf("page %d is of kind %#x", id, order.Uint16(page[8:]))
	}
	if count == 0 || pageHead+count*pageElement > len(page) || depth > 64 {
		return of, fmt.Errorf("page %d cannot have %d entries", id, count)
	}
	keys := make([][]byte, count, count+1)
	end := uint64(count * pageElement) // of the entry before, from the first element on
	for i := range keys {
		at := pageHead + i*pageElement
		pos, ksize := uint64(order.Uint32(page[at:])), uint64(order.Uint32(page[at+4:]))
		if keys[i], err = span(page[pageHead:], &end, uint64(i*pageElement)+pos, ksize); err != nil {
			return of, fmt.Errorf("page %d: %w", id, err)
		}
		if (low != nil && bytes.Compare(keys[i], low) < 0) || (high != nil && bytes.Compare(keys[i], high) >= 0) ||
			(i > 0 && bytes.Compare(keys[i-1], keys[i]) >= 0) {
			return of, fmt.Errorf("page %d: entry %d is out of order", id, i)
		}
	}
	keys = append(keys, high)
	below := make([]extent, count)
	errs := make([]error, count)
	walk := func(i int) (err error) {
		below[i], err = w.tree(order.Uint64(page[pageHead+i*pageElement+8:]), keys[i], keys[i+1], depth+1, flags, f)
		return err
	}
	var others background.Work
	defer others.Wait() // even if walk panics: they read what is unmapped then
	for i := range below {
		// The buckets one after the other, and not each page in a goroutine of its own.
		if free := w.free; flags == 0 && depth < 2 {
			select {
			case free <- struct{}{}:
				others.Go("persistence/journal.tree", func() {
					defer func() { <-free }()
					errs[i] = guard(func() error { return walk(i) })
				})
				continue
			default:
			}
		}
		if errs[i] = walk(i); errs[i] != nil {
			break
		}
	}
	others.Wait()
	for i, err := range errs {
		if err != nil {
			return of, err
		}
		of.pages += below[i].pages
		of.entries += below[i].entries
	}
	return of, nil
}

// leaf checks the entries of one page.
func (w *pageWalk) leaf(page, low, high []byte, flags uint32, f func(key, value []byte) error) error {
	count := int(order.Uint16(page[10:]))
	if pageHead+count*pageElement > len(page) {
		return fmt.Errorf("it cannot have %d entries", count)
	}
	end := uint64(count * pageElement)
	top := low
	for i := range count {
		at := pageHead + i*pageElement
		pos, ksize := uint64(i*pageElement)+uint64(order.Uint32(page[at+4:])), uint64(order.Uint32(page[at+8:]))
		key, err := span(page[pageHead:], &end, pos, ksize)
		if err != nil {
			return err
		}
		value, err := span(page[pageHead:], &end, pos+ksize, uint64(order.Uint32(page[at+12:])))
		if err != nil {
			return err
		}
		// The first key may equal the bound that the parent gives; after that each is greater than the one before.
		if c := bytes.Compare(key, top); ksize == 0 || (i == 0 && top != nil && c < 0) || (i > 0 && c <= 0) ||
			(high != nil && bytes.Compare(key, high) >= 0) {
			return fmt.Errorf("entry %d is out of order", i)
		}
		top = key
		if got := order.Uint32(page[at:]); got != flags {
			return fmt.Errorf("entry %d has flags %#x", i, got)
		}
		if err := f(key, value); err != nil {
			return err
		}
	}
	return nil
}

// span cuts out what begins where the last one ended: bbolt leaves no gaps.
func span(b []byte, end *uint64, pos, size uint64) ([]byte, error) {
	if pos != *end {
		return nil, errors.New("an entry does not follow the one before")
	}
	if *end = pos + size; *end > uint64(len(b)) {
		return nil, errors.New("an entry reaches over the end")
	}
	return b[pos:*end:*end], nil
}

// freePages checks the list of free pages, if the file has one: a page that is both free and in use would be
// overwritten.
func (w *pageWalk) freePages(used uint64) error {
	if w.meta.freelist == noFreelist {
		return nil
	}
	page, pages, err := w.page(w.meta.freelist)
	if err != nil {
		return fmt.Errorf("free list: %w", err)
	}
	if order.Uint16(page[8:]) != pageFreelist {
		return fmt.Errorf("free list: page %d is of kind %#x", w.meta.freelist, order.Uint16(page[8:]))
	}
	count, ids := uint64(order.Uint16(page[10:])), page[pageHead:]
	if count == 0xFFFF {
		count, ids = order.Uint64(ids), ids[8:]
	}
	if count > uint64(len(ids)/8) {
		return fmt.Errorf("free list: it cannot have %d entries", count)
	}
	for i := range count {
		id := order.Uint64(ids[8*i:])
		if id < 2 || id >= w.meta.high || w.seen[id/64]&(1<<(id%64)) != 0 {
			return fmt.Errorf("free list: page %d is not free", id)
		}
		w.seen[id/64] |= 1 << (id % 64)
	}
	if used+pages+count != w.meta.high {
		return fmt.Errorf("%d pages are neither used nor free", w.meta.high-used-pages-count)
	}
	return nil
}
