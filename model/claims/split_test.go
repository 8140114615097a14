package claims

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// split cuts a text that comes in pieces of so many bytes.
func split(t testing.TB, text string, size int) (pieces []Piece, rest string) {
	t.Helper()
	s := Splitter{Emit: func(p Piece) error {
		pieces = append(pieces, p)
		return nil
	}}
	for rest := text; rest != ""; {
		n := min(size, len(rest))
		if err := s.Write(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	return pieces, s.Rest()
}

var kinds = map[Kind]string{Sentence: "s", Heading: "h", Fence: "f", Code: "c", FenceEnd: "e", Row: "r"}

// Every way of cutting an answer into chunks gives the same pieces.
func TestAnAnswerIsCutIntoItsSentences(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"One. Two! Three? Four", []string{"s One.", "s Two!", "s Three?", "s Four"}},
		{"Use e.g. the port 1.5, i.e. this one. Next.", []string{"s Use e.g. the port 1.5, i.e. this one.", "s Next."}},
		{"It is `a. b` here. See [x. y](/a.b c). End", []string{"s It is `a. b` here.", "s See [x. y](/a.b c).", "s End"}},
		{"He said \"so.\" Then (this.) **Bold.** End", []string{"s He said \"so.\"", "s Then (this.)", "s **Bold.**", "s End"}},
		{"第一句。第二句！“第三句。”第四", []string{"s 第一句。", "s 第二句！", "s “第三句。”", "s 第四"}},
		{"A line\nthat goes on.\nNext", []string{"s A line\nthat goes on.", "s Next"}},
		{"A\n\nB", []string{"s A", "s B"}},
		{"## Head\ntext\n# Two", []string{"h ## Head", "s text", "h # Two"}},
		{"- one. two\n- three\n  - four\n1. five\n2) six\n", []string{"s one.", "s two", "s three", "s four", "s five", "s six"}},
		{"intro:\n```sh\na b\n\n# c\n```\nafter", []string{"s intro:", "f ```sh", "c a b", "c # c", "e ```", "s after"}},
		{"````\n```\n````\n~~~x\ny\n~~~", []string{"f ````", "c ```", "e ````", "f ~~~x", "c y", "e ~~~"}},
		{"| a | b |\n|---|---|\n| c. d | e |\nend", []string{"r | a | b |", "r |---|---|", "r | c. d | e |", "s end"}},
		{"> quoted. more\n> again", []string{"s quoted.", "s more", "s again"}},
		{"#hash and *emph* and 1.5 and -x", []string{"s #hash and *emph* and 1.5 and -x"}},
		{"no end `span. open\nnext. line", []string{"s no end `span. open\nnext.", "s line"}},
		{"---\n***\n", []string{"s ---\n***"}},
		{"", nil},
	} {
		for size := 1; size <= len(c.in)+1; size++ {
			pieces, rest := split(t, c.in, size)
			var got []string
			var whole strings.Builder
			for _, p := range pieces {
				got = append(got, kinds[p.Kind]+" "+p.Text)
				whole.WriteString(p.Lead + p.Text)
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("%q by %d:\n%q\nwant\n%q", c.in, size, got, c.want)
				break
			}
			if whole.WriteString(rest); whole.String() != c.in {
				t.Errorf("%q by %d comes back as %q", c.in, size, whole.String())
				break
			}
		}
	}
}

func TestACitationBelongsToTheSentenceBeforeIt(t *testing.T) {
	var got []Piece
	s := Splitter{Emit: func(p Piece) error { got = append(got, p); return nil }}
	write := func(text string) {
		if err := s.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	write("One")
	if s.Cite([]int{1}) {
		t.Error("a citation within a sentence is late")
	}
	write(". Two.")
	if s.Cite([]int{2}) {
		t.Error("a citation behind the point is late")
	}
	write(" Three.\n")
	if !s.Cite([]int{3}) {
		t.Error("a citation after the line is not late")
	}
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	want := []Piece{{Text: "One.", Cites: []Cite{{3, []int{1}}}}, {Lead: " ", Text: "Two.", Cites: []Cite{{4, []int{2}}}},
		{Lead: " ", Text: "Three."}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

func FuzzSplitter(f *testing.F) {
	for _, s := range []string{"One. Two", "- a\n- b", "```\nx\n```", "| a |\n|--|\n", "# h\n> q", "第一。第二", "e.g. x"} {
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, text string, size int) {
		if !utf8.ValidString(text) || len(text) > 1<<14 {
			t.Skip()
		}
		size = max(1, size%16)
		pieces, rest := split(t, text, size)
		var whole strings.Builder
		read := Read("", text)
		for _, p := range pieces {
			if p.Text == "" {
				t.Errorf("an empty piece of %q", text)
			}
			whole.WriteString(p.Lead + p.Text)
			_ = RoleOf(p)
			c := Parse(p.Text, p.Kind == Code)
			if f := c.Against(nil, read); !c.Empty() && (f.Score < 0 || f.Score > 1.0001) {
				t.Errorf("%q scores %v", p.Text, f.Score)
			}
			var places Places
			if clean, _ := places.Clean(p.Text, false); strings.Contains(clean, "](http") {
				t.Errorf("%q leads away as %q", p.Text, clean)
			}
		}
		if whole.WriteString(rest); whole.String() != text {
			t.Errorf("%q by %d comes back as %q", text, size, whole.String())
		}
	})
}
