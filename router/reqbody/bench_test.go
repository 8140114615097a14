package reqbody

import (
	"strings"
	"testing"

	"docent/api/stream"
)

// BenchmarkDecodeQuestion is what the body of a question costs, in a short conversation and in one with what many
// searches found: clients send back all that they have shown.
func BenchmarkDecodeQuestion(b *testing.B) {
	short := `{"id":"chat-0123456789abcdef","fp":"anonymous","threadId":null,"retrievalPageSize":5,"filter":null,` +
		`"messages":[{"id":"m0","role":"user","parts":[{"type":"text","text":"How do I install it?"}]},` +
		`{"id":"m1","role":"assistant","parts":[{"type":"step-start"},{"type":"text","text":"Run the installer."}]},` +
		`{"id":"m2","role":"user","parts":[{"type":"text","text":"And on a Mac?"}]}]}`
	found := `{"type":"tool-search","output":{"results":[{"path":"a","content":"words of a page, and more of them"}]}},`
	for name, raw := range map[string]string{
		"short": short, "long": strings.Replace(short, `{"type":"step-start"},`, strings.Repeat(found, 1000), 1),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := DecodeQuestion([]byte(raw), stream.UIMessages); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
