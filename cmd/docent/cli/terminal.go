package cli

import (
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/term"
)

// Terminal reports whether a person reads what is written to w as it is written.
func Terminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Colors reports whether what is written to w may have colors: it is a terminal, and nobody has asked for none
// (https://no-color.org).
func Colors(w io.Writer) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && Terminal(w)
}

// WriteDiff writes a diff, with colors on a terminal that may have them. No terminal gets what it would act on.
func WriteDiff(w io.Writer, diff string) error {
	switch {
	case Colors(w):
		diff = coloredDiff(diff)
	case Terminal(w):
		diff = PlainText(diff)
	}
	_, err := io.WriteString(w, diff)
	return err
}

func coloredDiff(diff string) string {
	var b strings.Builder
	for line := range strings.Lines(diff) {
		line, end := strings.TrimSuffix(line, "\n"), line[len(strings.TrimSuffix(line, "\n")):]
		code := ""
		switch {
		case strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
			code = "1"
		case strings.HasPrefix(line, "@@"):
			code = "36"
		case strings.HasPrefix(line, "+"):
			code = "32"
		case strings.HasPrefix(line, "-"):
			code = "31"
		}
		if line = PlainLine(line); code != "" {
			line = "\x1b[" + code + "m" + line + "\x1b[0m"
		}
		b.WriteString(line + end)
	}
	return b.String()
}

// OpenInBrowser opens an address in the browser of the person at the terminal. Where there is none, nothing happens: the
// address was printed.
func OpenInBrowser(w io.Writer, address string) {
	if !Terminal(w) {
		return
	}
	opener := []string{"xdg-open"}
	switch runtime.GOOS {
	case "darwin":
		opener = []string{"open"}
	case "windows":
		opener = []string{"rundll32", "url.dll,FileProtocolHandler"}
	default:
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
			return // a browser for text would take the terminal
		}
	}
	if cmd := exec.Command(opener[0], append(opener[1:], address)...); cmd.Start() == nil {
		_ = cmd.Process.Release()
	}
}
