package commands

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"docent/cmd/docent/cli"
	"docent/cmd/docent/control"
	"docent/cmd/docent/operator"
)

// newHealthCommand is the health check of containers. It is hidden and stays under this name: images and compose files on
// operators' machines call it. People ask `docent status`.
func newHealthCommand(prog cli.Program) *cobra.Command {
	o := &cli.Operator{Prog: prog}
	var live bool
	var limit time.Duration
	cmd := &cobra.Command{
		Use: "health", Hidden: true, Short: "Exit with status 0 if the running server takes requests", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit <= 0 {
				return cli.Usagef("--timeout is a time such as 5s")
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), limit)
			defer cancel()
			path := "/readyz"
			if live {
				path = "/healthz"
			}
			said, err := healthOf(ctx, o, cmd, path)
			if errors.Is(err, context.DeadlineExceeded) {
				err = fmt.Errorf("no answer within %v", limit)
			}
			if err == nil {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), said)
			}
			return err
		},
	}
	cli.OperatorFlags(cmd, o)
	cmd.Flags().BoolVar(&live, "live", false, "check only that the process is alive, even while it stops or its database does not answer")
	cmd.Flags().DurationVar(&limit, "timeout", 5*time.Second, "how long to wait for the answer")
	return cmd
}

// healthOf asks the server at its own listener, not over its socket alone: what cannot accept connections is not healthy.
func healthOf(ctx context.Context, o *cli.Operator, cmd *cobra.Command, path string) (string, error) {
	c, err := o.Load(cmd)
	if err != nil {
		return "", err
	}
	text, err := control.Call(ctx, c.Data, operator.OpAddress, []byte("{}"), func(string, int, int) {})
	if errors.Is(err, control.ErrNoServer) {
		return "", fmt.Errorf("no server has the data directory %s, or it is still starting", c.Data)
	}
	var own operator.OwnAddressed
	if err == nil {
		err = json.Unmarshal(text, &own)
	}
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, own.URL+path, nil)
	if err != nil {
		return "", err
	}
	// The certificate is for the name under which others reach the server. This is the same machine, at the address that
	// the server itself has just told.
	resp, err := (&http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}).RoundTrip(req) //nolint:gosec
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answers %s", own.URL+path, resp.Status)
	}
	return own.URL + ": healthy", nil
}
