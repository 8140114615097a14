package modeltest

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// Main serves as a process: it prints the address that providers are configured with and serves until ctx ends.
// Arguments are --listen HOST:PORT, --window TOKENS, --key KEY and a file of scripts in JSON, which may be left out and
// sent later.
func Main(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("modeltest", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:0", "address")
	s := New()
	flags.IntVar(&s.Window, "window", 0, "tokens of the longest conversation")
	flags.StringVar(&s.Key, "key", "", "what requests have to bear")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if name := flags.Arg(0); name != "" {
		data, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read the scripts: %w", err)
		}
		if err := json.Unmarshal(data, &s.scripts); err != nil {
			return fmt.Errorf("read the scripts: %w", err)
		}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", *listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if _, err := fmt.Fprintf(stdout, "http://%s\n", l.Addr()); err != nil {
		return fmt.Errorf("print the address: %w", err)
	}
	server := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
