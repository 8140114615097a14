// Package client speaks the public API: it asks the assistant, gives the agent work, and follows jobs.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"docent/api"
)

// A Client speaks the public API, as any other client does.
type Client struct {
	Base string // address of the server
	Key  string // API key; none where empty
	HTTP *http.Client
}

// Do sends a request with a JSON body (none where body is nil). The caller closes the response's body. An answer that
// is no success becomes an error with the server's own sentence.
func (c *Client) Do(ctx context.Context, method, path string, body any, header ...string) (*http.Response, error) {
	if u, err := url.Parse(c.Base); err != nil || u.Host == "" {
		return nil, &AddressError{c.Base}
	}
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		reader = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.Base, "/")+path, reader)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.Key)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		defer resp.Body.Close()
		return nil, ResponseError(resp)
	}
	return resp, nil
}

// An AddressError says that a server's address cannot be one.
type AddressError struct{ Address string }

func (e *AddressError) Error() string {
	return fmt.Sprintf("--url %q is not an address such as http://127.0.0.1:8080", e.Address)
}

// An Error is an error answer of the API.
type Error struct {
	Status  int
	Code    string
	Message string
	Details []api.Problem
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s (%d %s)", e.Message, e.Status, e.Code)
	for _, d := range e.Details {
		text += fmt.Sprintf("\n  %s: %s", d.Field, d.Message)
	}
	return text
}

// ResponseError is what an answer says that is no success.
func ResponseError(resp *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var body struct {
		Message string        `json:"message"`
		Code    string        `json:"code"`
		Details []api.Problem `json:"details"`
	}
	if json.Unmarshal(text, &body) != nil || body.Message == "" {
		body.Message = "the server answered " + resp.Status
	}
	return &Error{Status: resp.StatusCode, Code: body.Code, Message: body.Message, Details: body.Details}
}

// Get reads one resource into out.
func (c *Client) Get(ctx context.Context, path string, out any) error {
	resp, err := c.Do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	return decodeBody(resp, out)
}

// Post sends a body and reads the answer into out.
func (c *Client) Post(ctx context.Context, path string, body, out any, header ...string) error {
	resp, err := c.Do(ctx, http.MethodPost, path, body, header...)
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
