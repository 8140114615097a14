package control

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	winio "github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"

	"docent/persistence/datadir"
)

// pipes is where Windows has its named pipes. A name says nothing of who made the pipe: ours is random, and stands in the
// data directory.
const pipes = `\\.\pipe\docent-`

// listen makes a pipe that only this user, administrators and the system can open, and writes its name to path.
func listen(path string) (net.Listener, error) {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return nil, fmt.Errorf("find out which user this is: %w", err)
	}
	name := pipes + strings.ToLower(rand.Text())
	listener, err := winio.ListenPipe(name, &winio.PipeConfig{
		SecurityDescriptor: "D:P(A;;GA;;;" + user.User.Sid.String() + ")(A;;GA;;;BA)(A;;GA;;;SY)",
	})
	if err != nil {
		return nil, err
	}
	if err := datadir.WriteFile(path, []byte(name), 0o600); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

func dial(ctx context.Context, path string) (net.Conn, error) {
	name, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(string(name), pipes) {
		return nil, fmt.Errorf("%s names no pipe", path)
	}
	return winio.DialPipeContext(ctx, string(name))
}
