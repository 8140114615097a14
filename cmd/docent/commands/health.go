package commands

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"docent/cmd/docent/cli"
	"docent/cmd/docent/control"
	"docent/cmd/docent/operator"
)

// HealthAnswer is what a health check found.
type HealthAnswer struct {
	Healthy bool   `json:"healthy"`
	URL     string `json:"url,omitempty"`
	Status  string `json:"status,omitempty"` // as the server says it
	Version string `json:"version,omitempty"`
	Problem string `json:"problem,omitempty"`
}

func newHealthCommand(prog cli.Program) *cobra.Command {
	o := &cli.Operator{Prog: prog}
	var url string
	var live bool
	var limit time.Duration
	cmd := &cobra.Command{
		Use: "health", Short: "Check that the running server takes requests", Args: cobra.NoArgs,
		Long: "Check that the running server takes requests: exit status 0 where it does, and 1 with the reason where not. For health\n" +
			"checks of containers and for scripts. Without --url it is the server of the data directory, asked over its own listener.",
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
			found, err := healthOf(ctx, o, cmd, url, path)
			if errors.Is(err, context.DeadlineExceeded) {
				err = fmt.Errorf("no answer within %v", limit)
			}
			found.Healthy = err == nil
			switch {
			case o.JSON:
				if err != nil {
					found.Problem = err.Error()
				}
				err = errors.Join(cli.PrintJSON(cmd.OutOrStdout(), found), err)
			case err == nil:
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", found.URL, found.Status)
			}
			return err
		},
	}
	cli.OperatorFlags(cmd, o)
	cmd.Flags().StringVar(&url, "url", "", "address of a server, instead of the data directory's")
	cmd.Flags().BoolVar(&live, "live", false, "only whether the process lives: also while it stops, or its database does not answer")
	cmd.Flags().DurationVar(&limit, "timeout", 5*time.Second, "how long to wait for the answer")
	return cmd
}

// healthOf asks one server how it is. The data directory's own is asked at its listener, not over its socket alone: what
// cannot accept connections is not healthy.
func healthOf(ctx context.Context, o *cli.Operator, cmd *cobra.Command, url, path string) (HealthAnswer, error) {
	transport := &http.Transport{DisableKeepAlives: true}
	if url == "" {
		c, err := o.Load(cmd)
		if err != nil {
			return HealthAnswer{}, err
		}
		text, err := control.Call(ctx, c.Data, operator.OpAddress, []byte("{}"), func(string, int, int) {})
		if errors.Is(err, control.ErrNoServer) {
			return HealthAnswer{}, fmt.Errorf("no server has the data directory %s, or it is still starting", c.Data)
		}
		var own operator.OwnAddressed
		if err == nil {
			err = json.Unmarshal(text, &own)
		}
		if err != nil {
			return HealthAnswer{}, err
		}
		url = own.URL
		// The certificate is for the name under which others reach the server. This is the same machine, at the address that
		// the server itself has just told.
		transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec
	}
	found := HealthAnswer{URL: strings.TrimSuffix(url, "/")}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, found.URL+path, nil)
	if err != nil {
		return found, cli.Usagef("--url: %w", err)
	}
	resp, err := (&http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}).Do(req)
	if err != nil {
		return found, err
	}
	defer resp.Body.Close()
	var said struct{ Status, Version, Message string }
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return found, err
	}
	told := json.Unmarshal(text, &said)
	found.Status, found.Version = said.Status, said.Version
	switch {
	case resp.StatusCode != http.StatusOK:
		return found, fmt.Errorf("%s answers %s", found.URL+path, strings.TrimSpace(resp.Status+" "+said.Message))
	case told != nil || said.Status == "":
		return found, fmt.Errorf("what answers at %s is not docent", found.URL+path)
	}
	return found, nil
}
