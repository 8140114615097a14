package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal is a terminal, and what it was told so far.
func terminal(t *testing.T) (tty *os.File, told func() string) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { screen.Close() })
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Skip(err)
	}
	if tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Skip(err)
	}
	return tty, func() string {
		tty.Close()
		text, _ := io.ReadAll(screen) // which ends with an error of the kernel's
		return strings.ReplaceAll(string(text), "\r\n", "\n")
	}
}

// Who wants no colors gets no escapes of others' either.
func TestATerminalWithoutColorsGetsNoEscapes(t *testing.T) {
	for name, value := range map[string]string{"NO_COLOR": "1", "TERM": "dumb"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			tty, told := terminal(t)
			m := NewMarkdown(tty)
			if _, err := io.WriteString(m, "**a**\x1b[2Jb\n"); err != nil || m.Close() != nil || WriteDiff(tty, "+\x1b]52;c;eA==\x07c\n") != nil {
				t.Error(err)
			}
			if got := told(); got != "**a**[2Jb\n+]52;c;eA==c\n" {
				t.Errorf("the terminal was told %q", got)
			}
		})
	}
}
