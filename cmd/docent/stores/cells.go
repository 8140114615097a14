package stores

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"docent/actors/pulls/review"
	"docent/cmd/docent/config"
	"docent/internal/cell"
	"docent/search/page"
	website "docent/search/sources/crawl"
	"docent/web"
)

// CellKinds are the parsers of what strangers write.
func CellKinds() []cell.Kind {
	return slices.Concat(page.Kinds(), website.Kinds(), review.Kinds(), web.RenderKinds())
}

// Cells are those of a program: one for what is read of sources, and one for what pages show, so that no reading makes
// a page wait.
type Cells struct{ Reading, Pages *cell.Pool }

// Memory of one worker.
const (
	maxReadingMemory = 256 << 20
	minReadingMemory = 96 << 20
	maxPagesMemory   = 128 << 20
	minPagesMemory   = 64 << 20
)

// NewCells starts no process yet.
func NewCells(log *slog.Logger) Cells {
	workers := min(max(2, runtime.GOMAXPROCS(0)), 4)
	there := config.MemoryLimit(0, "", os.ReadFile) // 0 if it is not known
	share := func(of int64, least, most int64) int64 {
		if there == 0 {
			return most
		}
		return min(max(there/of, least), most)
	}
	pool := func(workers int, memory int64) *cell.Pool {
		return cell.New(cell.Options{Command: cellCommand, Kinds: CellKinds(), Workers: workers, Memory: memory, Log: log})
	}
	return Cells{Reading: pool(workers, share(3*int64(workers), minReadingMemory, maxReadingMemory)),
		Pages: pool(2, share(12, minPagesMemory, maxPagesMemory))}
}

func (c Cells) Close() {
	if c.Reading != nil {
		_ = c.Reading.Close()
		_ = c.Pages.Close()
	}
}

// cellCommand starts this program again, with nothing of its settings and secrets.
func cellCommand() (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if runtime.GOOS == "linux" { // the same program, even if a newer one was installed meanwhile
		self = filepath.Join("/proc", "self", "exe")
	}
	cmd := exec.Command(self)
	cmd.Args = []string{os.Args[0], "cell"}
	cmd.Env = []string{}
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if strings.EqualFold(name, "SystemRoot") || name == "GORACE" || name == "GOCOVERDIR" ||
			strings.HasPrefix(name, config.EnvPrefix+"TEST_") {
			cmd.Env = append(cmd.Env, pair)
		}
	}
	return cmd, nil
}
