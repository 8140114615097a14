package remote_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"docent/model"
	"docent/model/modeltest"
	"docent/model/remote"
)

func TestAnEndpointListsItsModels(t *testing.T) {
	peer := modeltest.New()
	peer.Key, peer.Models = "sk-1", []string{"small", "large", "small"}
	server := httptest.NewServer(peer)
	defer server.Close()
	for provider, base := range map[string]string{model.OpenAI: server.URL + "/v1/", model.Anthropic: server.URL} {
		c := remote.Config{BaseURL: base, Key: func() string { return "sk-1" }, Transport: http.DefaultTransport}
		names, err := remote.Names(t.Context(), provider, c)
		if err != nil || !slices.Equal(names, []string{"large", "small"}) {
			t.Errorf("%s lists %q, %v", provider, names, err)
		}
		c.Key = func() string { return "sk-2" }
		if names, err := remote.Names(t.Context(), provider, c); err == nil || !strings.Contains(err.Error(), "Incorrect API key") {
			t.Errorf("%s with another key: %q, %v", provider, names, err)
		}
	}
	peer.Models = nil
	c := remote.Config{BaseURL: server.URL + "/v1", Key: func() string { return "sk-1" }, Transport: http.DefaultTransport}
	if names, err := remote.Names(t.Context(), model.OpenAI, c); err == nil {
		t.Errorf("no models are %q", names)
	}
}
