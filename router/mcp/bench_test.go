package mcp

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"docent/api"
	"docent/internal/inprocess"
	"docent/search"
)

type noPages struct{}

func (noPages) Published(context.Context, api.ProjectID) ([]search.PageInfo, error) { return nil, nil }

// BenchmarkSessions reports what an open session holds on the server, with the stream on which a client waits for what
// the server says by itself; the client's side and the connection's are not in it.
func BenchmarkSessions(b *testing.B) {
	s := New(Deps{Pages: noPages{}})
	s.Over(http.NotFoundHandler())
	defer s.Close()
	p := api.Project{ID: "docs", Domain: "docs.example.com"}
	handler := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		s.ServeReaders(w, req, p, netip.MustParseAddr("127.0.0.1"))
	})
	send := func(ctx context.Context, method, session, body string) *http.Response {
		req, err := http.NewRequestWithContext(ctx, method, "http://docent.example/mcp", strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
			req.Header.Set("MCP-Protocol-Version", "2025-11-25")
		}
		res, err := inprocess.Transport{Handler: handler}.RoundTrip(req)
		if err != nil {
			b.Fatal(err)
		}
		return res
	}
	heap := func() (bytes uint64) {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	before := heap()
	for i := range b.N {
		res := send(ctx, http.MethodPost, "", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`, i))
		io.Copy(io.Discard, res.Body)
		session := res.Header.Get("Mcp-Session-Id")
		if res.StatusCode != http.StatusOK || session == "" {
			b.Fatalf("status %d, session %q", res.StatusCode, session)
		}
		send(ctx, http.MethodPost, session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`).Body.Close()
		res = send(ctx, http.MethodGet, session, "") // stays open
		defer res.Body.Close()
	}
	b.ReportMetric(float64(heap()-before)/float64(b.N), "bytes/session")
}
