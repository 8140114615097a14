package meaning

import (
	"os"
	"testing"
)

func keysFrom(from, to int) (keys []Key) {
	for i := from; i < to; i++ {
		keys = append(keys, KeyOf([]byte{byte(i), byte(i >> 8)}))
	}
	return keys
}

func put(t *testing.T, s *Store, keys []Key, numbers int) {
	t.Helper()
	if err := s.Add(keys, clustered(len(keys), numbers, 3)); err != nil {
		t.Fatal(err)
	}
}

func reopened(t *testing.T, dir string, m Model, want int) *Store {
	t.Helper()
	s, err := OpenStore(dir, m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if s.Len() != want {
		t.Errorf("%d vectors, want %d", s.Len(), want)
	}
	return s
}

// Whatever becomes of the file, what is whole is kept and the rest is not there: never another vector.
func TestADamagedFileLosesWhatIsDamaged(t *testing.T) {
	m := Model{Name: "m"}
	for name, c := range map[string]struct {
		damage func(raw []byte) []byte
		want   int
	}{
		"cut off":        {func(raw []byte) []byte { return raw[:len(raw)-5] }, 9},
		"a record":       {func(raw []byte) []byte { raw[len(raw)/2] ^= 4; return raw }, 9},
		"the header":     {func(raw []byte) []byte { raw[12] ^= 4; return raw }, 0},
		"no file of any": {func([]byte) []byte { return []byte("something else\n") }, 0},
		"empty":          {func([]byte) []byte { return nil }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := reopened(t, dir, m, 0)
			put(t, s, keysFrom(0, 10), 32)
			raw, err := os.ReadFile(s.path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(s.path, c.damage(raw), 0o600); err != nil {
				t.Fatal(err)
			}
			s = reopened(t, dir, m, c.want)
			var lost []Key
			for _, k := range keysFrom(0, 10) {
				if !s.Has(k) {
					lost = append(lost, k)
				}
			}
			put(t, s, lost, 32)
			if f, err := Load(dir, m, keysFrom(0, 10)); err != nil || f.Len() != 10 {
				t.Errorf("%v, %v", f, err)
			}
		})
	}
}

// Vectors of sections that are gone go too once they are many, and those of other models or lengths are told apart.
func TestVectorsOfGoneSectionsAreCollected(t *testing.T) {
	dir, m := t.TempDir(), Model{Name: "m"}
	s := reopened(t, dir, m, 0)
	put(t, s, keysFrom(0, 1000), 8)
	if err := s.Add(keysFrom(2000, 2001), make([][]float32, 1)); err != nil { // refused
		t.Fatal(err)
	}
	live := map[Key]bool{}
	for _, k := range append(keysFrom(0, 900), keysFrom(2000, 2001)...) {
		live[k] = true
	}
	if err := s.Collect(live); err != nil || s.Len() != 1001 {
		t.Errorf("few that are gone are collected: %d are left, %v", s.Len(), err)
	}
	for _, k := range keysFrom(400, 900) {
		delete(live, k)
	}
	before, err := s.Field(keysFrom(0, 400))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Collect(live); err != nil || s.Len() != 401 {
		t.Errorf("%d are left, %v", s.Len(), err)
	}
	put(t, s, keysFrom(3000, 3001), 8)
	s = reopened(t, dir, m, 402)
	after, err := s.Field(append(keysFrom(0, 400), keysFrom(2000, 2001)...))
	if err != nil || after.Len() != 400 || !s.Has(keysFrom(2000, 2001)[0]) {
		t.Fatalf("%d sections have vectors, %v", after.Len(), err)
	}
	q := clustered(1, 8, 9)[0]
	for section := range uint32(400) {
		a, _ := before.Similarity(before.Probe(q), section)
		b, _ := after.Similarity(after.Probe(q), section)
		if a != b {
			t.Fatalf("section %d has another vector", section)
		}
	}
	if err := s.Add(keysFrom(4000, 4001), [][]float32{{1, 2}}); err == nil {
		t.Error("a vector of another length is kept")
	}
	if reopened(t, dir, Model{Name: "m", Prefix: "p"}, 0); after.Probe([]float32{1, 2}) != nil {
		t.Error("a question's vector of another length is compared")
	}
}
