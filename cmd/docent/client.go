package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"docent/api"
)

// A client speaks the public API, as any other client does.
type client struct {
	base string
	key  string
	http *http.Client
}

// clientFlags adds the flags that name a server and a key.
func clientFlags(cmd *cobra.Command, c *client) {
	c.http = &http.Client{} // no overall timeout: answers stream
	cmd.PersistentFlags().StringVar(&c.base, "url", envOr("URL", "http://127.0.0.1:8080"), "address of the server (DOCENT_URL)")
	cmd.PersistentFlags().StringVar(&c.key, "key", envOr("KEY", ""), "API key (DOCENT_KEY)")
}

func envOr(name, standard string) string {
	if v := os.Getenv(envPrefix + name); v != "" {
		return v
	}
	return standard
}

// do sends a request with a JSON body (none where body is nil). The caller closes the response's body. An answer that
// is no success becomes an error with the server's own sentence.
func (c *client) do(ctx context.Context, method, path string, body any, header ...string) (*http.Response, error) {
	if u, err := url.Parse(c.base); err != nil || u.Host == "" {
		return nil, usagef("--url %q is not an address such as http://127.0.0.1:8080", c.base)
	}
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		reader = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.base, "/")+path, reader)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		defer resp.Body.Close()
		return nil, responseError(resp)
	}
	return resp, nil
}

// A serverError is an error answer of the API.
type serverError struct {
	Status  int
	Code    string
	Message string
	Details []api.Problem
}

func (e *serverError) Error() string {
	text := fmt.Sprintf("%s (%d %s)", e.Message, e.Status, e.Code)
	for _, d := range e.Details {
		text += fmt.Sprintf("\n  %s: %s", d.Field, d.Message)
	}
	return text
}

func responseError(resp *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var body struct {
		Message string        `json:"message"`
		Code    string        `json:"code"`
		Details []api.Problem `json:"details"`
	}
	if json.Unmarshal(text, &body) != nil || body.Message == "" {
		body.Message = "the server answered " + resp.Status
	}
	return &serverError{Status: resp.StatusCode, Code: body.Code, Message: body.Message, Details: body.Details}
}

// getJSON reads one resource into out.
func (c *client) getJSON(ctx context.Context, path string, out any) error {
	resp, err := c.do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	return decodeBody(resp, out)
}

// postJSON sends a body and reads the answer into out.
func (c *client) postJSON(ctx context.Context, path string, body, out any, header ...string) error {
	resp, err := c.do(ctx, http.MethodPost, path, body, header...)
	if err != nil {
		return err
	}
	return decodeBody(resp, out)
}

func decodeBody(resp *http.Response, out any) error {
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("read the server's answer: %w", err)
	}
	return nil
}
