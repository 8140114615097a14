package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"docent/model"
)

// maxNames is how many of an endpoint's models are listed: some offer many hundreds.
const maxNames = 1000

// Names returns the models that an endpoint lists, sorted. It uses the address, the key, the headers, and the transport of c. It
// fails if the endpoint lists none.
func Names(ctx context.Context, provider string, c Config) (names []string, err error) {
	if c.BaseURL == "" {
		c.BaseURL = publicURL[provider]
	}
	address, header := strings.TrimRight(c.BaseURL, "/"), bearer
	if provider == model.Anthropic {
		address, header = strings.TrimSuffix(messagesWire{}.address(address), "messages")+"models?limit=1000", messagesWire{}.header
	} else {
		address += "/models"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	header(req.Header, c.key())
	for name, value := range c.ExtraHeaders {
		req.Header.Set(name, value)
	}
	if c.Transport == nil {
		c.Transport = shared
	}
	client := http.Client{Transport: c.Transport, // nor is the key carried elsewhere by a redirect
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	if err != nil {
		return nil, fmt.Errorf("read the list of models: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		e := readProblem(resp.StatusCode, body)
		if e.text == "" {
			e.text = resp.Status
		}
		return nil, e
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &list) == nil {
		for _, one := range list.Data {
			if len(one.ID) > 0 && len(one.ID) <= 200 && len(names) < maxNames {
				names = append(names, one.ID)
			}
		}
	}
	if len(names) == 0 {
		return nil, errors.New("the endpoint lists no models")
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
