package harness

import (
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"docent/api"
	"docent/cmd/docent/cli"
	"docent/cmd/docent/commands"
	"docent/cmd/docent/config"
)

// RunAsDocent makes the test binary the program itself: tests start it, kill it and start it again.
const RunAsDocent = "DOCENT_TEST_RUN_MAIN"

// RaceOptions is the variable that the race detector takes its options from.
const RaceOptions = "GORACE"

// Main is the TestMain of every theme: it runs the tests, or what the test binary is started as.
func Main(m *testing.M) {
	// A command that a test runs in its own process starts its workers from the test binary.
	if worker := len(os.Args) > 1 && os.Args[1] == "cell"; worker || os.Getenv(RunAsDocent) != "" {
		var prog cli.Program
		if file := os.Getenv(ClockFile); file != "" {
			prog.Now = settableClock(file)
		}
		if os.Getenv(CrashOnMark) != "" {
			prog.BeforeIndexing = crashWhereMarked
		}
		prog.SlackURL, prog.DiscordURL = os.Getenv(SlackOfTest), os.Getenv(DiscordOfTest)
		commands.Main(prog) // what it starts runs as the program too
		return
	}
	if os.Getenv(runAsProvider) != "" {
		playProvider()
		return
	}
	if os.Getenv(RaceOptions) == "" {
		// A program that was built with the race detector waits a second at its end by default.
		_ = os.Setenv(RaceOptions, "atexit_sleep_ms=10")
	}
	programs := map[string]func(){"docent": func() { commands.Main(cli.Program{}) }, "model-provider": playProvider, "call": call}
	if _, script := programs[filepath.Base(os.Args[0])]; !script { // else the flags and the settings are the program's
		for _, pair := range os.Environ() { // a developer may have settings in it
			name, _, _ := strings.Cut(pair, "=")
			if strings.HasPrefix(name, config.EnvPrefix) && !strings.HasPrefix(name, config.EnvPrefix+"TEST_") {
				_ = os.Unsetenv(name)
			}
		}
		flag.Parse()
		given := false
		flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
		if !given {
			// The tests mostly wait: for servers that start, for answers that come at a given speed, for other processes.
			_ = flag.Set("test.parallel", strconv.Itoa(max(serversAtOnce, runtime.GOMAXPROCS(0))))
		}
	}
	testscript.Main(m, programs)
}

// serversAtOnce bounds how many tests with a server run at the same time: more than there are processors, and few
// enough for each to get its share of a small machine.
const serversAtOnce = 6

// ClockFile names a file that says by how much the program's clock is wrong.
const ClockFile = "CLOCK_OF_DOCENT_TEST"

// settableClock is the time as the file has it, the last one that it had where it is being written. Like the time of a
// clock that is set, and unlike time.Now's, its differences show that it was.
func settableClock(file string) func() time.Time {
	var wrong atomic.Int64
	return func() time.Time {
		if text, err := os.ReadFile(file); err == nil {
			if d, err := time.ParseDuration(string(text)); err == nil {
				wrong.Store(int64(d))
			}
		}
		return time.Now().Add(time.Duration(wrong.Load())).Round(0)
	}
}

// Update has tests write the files that they compare with.
var Update = flag.Bool("update", false, "write the expected files again")

// CrashOnMark has the program crash where it reads a folder that holds MarkOfCrash, as hostile content would have it
// crash.
const (
	CrashOnMark = "CRASH_OF_DOCENT_TEST"
	MarkOfCrash = "crash.txt"
)

// SlackOfTest and DiscordOfTest name the addresses of what plays the chats.
const (
	SlackOfTest   = "SLACK_OF_DOCENT_TEST"
	DiscordOfTest = "DISCORD_OF_DOCENT_TEST"
)

func crashWhereMarked(p api.Project) {
	if _, err := os.Stat(filepath.Join(p.Source, MarkOfCrash)); err == nil {
		ended := make(chan struct{})
		go func() { defer close(ended); panic("hostile content") }() // where nobody recovers
		<-ended
		select {}
	}
}
