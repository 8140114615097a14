package written

import "testing"

func TestAFieldKnowsTheWordsOfQuestions(t *testing.T) {
	questions := [][]string{nil, {"How do I rotate a leaked token?", "Is a token rotated by itself?"}, {"Where are logs?"}}
	f := New(len(questions), func(s uint32) ([]string, string) { return questions[s], "en" })
	weight := func(term string) map[uint32]float32 {
		out := map[uint32]float32{}
		f.Each(term, func(s uint32, w float32) { out[s] = w })
		return out
	}
	if f.Has != 2 || f.Bytes() == 0 {
		t.Errorf("%d sections, %d bytes", f.Has, f.Bytes())
	}
	if got := weight("token"); len(got) != 1 || got[1] <= weight("leak")[1] || weight("leak")[1] == 0 {
		t.Errorf("token %v, leak %v", got, weight("leak"))
	}
	if got := weight("the"); len(got) != 0 {
		t.Errorf("a word of grammar weighs %v", got)
	}
	if New(3, func(uint32) ([]string, string) { return nil, "en" }) != nil {
		t.Error("a field of nothing")
	}
	var none *Field
	none.Each("token", func(uint32, float32) { t.Error("nothing has a word") })
}
