package deploy

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"docent/cmd/docent/config"
	"docent/cmd/docent/server"
	"docent/persistence/datadir"
	"docent/tests/harness"
)

// BenchmarkScrape reads the metrics of a server that keeps 10,000 threads: what a scrape costs follows what there is to
// measure, not how much was measured.
func BenchmarkScrape(b *testing.B) {
	data := filepath.Join(b.TempDir(), "data")
	p := harness.NewProject(b, data, "harbour", harness.WriteFiles(b, harness.Harbour))
	harness.Docent(b, "bench", "seed", "--data", data, "--project", p.ID, "--conversations", "10000", "--jobs", "1000")
	dir, err := datadir.Open(data, datadir.Server, 10*time.Second)
	if err != nil {
		b.Fatal(err)
	}
	defer dir.Close()
	c := config.Default()
	c.Data = data
	a, err := server.New(b.Context(), server.Deps{Dir: dir, Config: c, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		a.CancelWork()
		if err := a.Close(); err != nil {
			b.Error(err)
		}
	}()
	size := 0
	for b.Loop() {
		answer := httptest.NewRecorder()
		req := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		req.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
		a.Edge.ShowMetrics(answer, req)
		n, err := io.Copy(io.Discard, answer.Body)
		if err != nil || answer.Code != http.StatusOK || n == 0 {
			b.Fatal(answer.Code, n, err)
		}
		size = int(n)
	}
	b.ReportMetric(float64(size), "B/scrape")
}
