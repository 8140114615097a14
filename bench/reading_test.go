package bench

import (
	"bytes"
	"net/http/httptest"
	"testing"
	"time"

	"docent/api/stream"
)

// What the bench itself pays for each part that it reads and checks: it shares the machine with the server.
func BenchmarkCheck(b *testing.B) {
	for name, form := range map[string]stream.Form{"v1": stream.DataStream, "v2": stream.UIMessages} {
		b.Run(name, func(b *testing.B) {
			const parts = 200
			answer := httptest.NewRecorder()
			Limit(form, Script{Parts: parts, Interval: time.Microsecond}).ServeHTTP(answer,
				httptest.NewRequest("POST", "/discovery/"+name+"/assistant/docs/message", bytes.NewReader([]byte(`{}`))))
			b.SetBytes(int64(answer.Body.Len()))
			b.ReportAllocs()
			for b.Loop() {
				c := checker{form: form, scripted: true}
				for data, ok := answer.Body.Bytes(), true; ok; {
					var err error
					if data, _, ok, err = c.next(data); err != nil {
						b.Fatal(err)
					}
				}
				if !c.finished || c.parts != parts {
					b.Fatalf("%d parts, finished %v", c.parts, c.finished)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/parts, "ns/part")
		})
	}
}
