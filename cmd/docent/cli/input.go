package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"docent/persistence/secrets"
)

// ReadHidden asks for a line at a terminal and reads it without showing it. The terminal stops showing what is typed before it
// asks: who answers at once, or pastes, is not seen either.
func ReadHidden(terminal *os.File, out io.Writer, prompt string) (_ string, err error) {
	before, err := term.MakeRaw(int(terminal.Fd()))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, term.Restore(int(terminal.Fd()), before)) }()
	return term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{terminal, out}, "").ReadPassword(prompt)
}

// ReadSecretText reads a secret from standard input; from a terminal it reads a line that is not shown.
func ReadSecretText(cmd *cobra.Command) (string, error) {
	if file, ok := cmd.InOrStdin().(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return ReadHidden(file, cmd.ErrOrStderr(), "Token: ")
	}
	text, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), secrets.Most+2))
	return string(text), err
}

// AbsoluteSource makes a path independent of where the command was started; a URL stays as it is.
func AbsoluteSource(source string) string {
	if strings.Contains(source, "://") || (strings.Contains(source, ":") && !pathExists(source)) {
		return source // a URL, or host:path as git writes it
	}
	if abs, err := filepath.Abs(source); err == nil {
		return abs
	}
	return source
}

func pathExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
