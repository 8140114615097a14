package main

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"docent/api"
	"docent/client"
)

// Private addresses are the operator's to allow, by command: no form of the console and no request to the API gives
// them to a source, takes them away, or moves where they lead.
func TestPrivateAddressesAreAllowedByCommandAlone(t *testing.T) {
	t.Parallel()
	h := newConsoleHouse(t)
	site := aSite(t)
	ops := h.app.stores.operations()
	allowed := api.Collect{Web: api.WebOptions{AllowPrivate: true}}
	if _, err := ops.addProject(t.Context(), api.Project{ID: "wiki", Domain: "wiki.example.com", Kind: api.SourceWeb,
		Source: site + "/docs/", Collect: allowed}, quietly); err != nil {
		t.Fatal(err)
	}
	base := "/console/" + string(api.DefaultOrg) + "/wiki.example.com"
	if _, err := ops.addSource(t.Context(), sourceParams{ID: "wiki", Source: api.Source{Label: "inner", Kind: api.SourceWeb,
		Address: site + "/docs/", Collect: allowed}}, quietly); err != nil {
		t.Fatal(err)
	}
	b := h.as("")
	refused := func(name, page, form, want string, values url.Values) {
		t.Helper()
		if status, text, _ := b.send(base+page, base+form, values); status != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%s: %d, without %q\n%s", name, status, want, text)
		}
	}
	for _, field := range []string{"allowPrivate", "collect.web.allowPrivate", "allow-private", "ALLOWPRIVATE"} {
		on := func(more url.Values) url.Values { more.Set(field, "on"); return more }
		refused("a new source", "/sources", "/sources/further", "command line", on(url.Values{"label": {"new"}, "kind": {"web"},
			"address": {site + "/docs/"}}))
		refused("a source", "/sources", "/sources/further/inner/set", "command line", on(url.Values{"weight": {"2"}}))
		refused("the settings", "/settings", "/settings/change", "command line", on(url.Values{"name": {"Wiki"}}))
		if status, text, _ := b.send("/console/setup", "/console/setup/source", on(url.Values{"source": {t.TempDir()}})); status != 400 ||
			!strings.Contains(text, "command line") {
			t.Errorf("a new project: %d", status)
		}
	}
	refused("another address", "/settings", "/settings/change", "source-fault", url.Values{"source": {"http://169.254.169.254/"}})
	if status, text, _ := b.send(base+"/sources", base+"/sources/further", url.Values{"label": {"new"}, "kind": {"web"},
		"address": {site + "/docs/"}}); status != http.StatusBadRequest || !strings.Contains(text, "private") {
		t.Errorf("a new source at a private address: %d\n%s", status, text)
	}
	// What the API takes has no such thing in it, and changes none.
	admin := client.Client{Base: h.url, Key: newKeyOf(t, h, "wiki")}
	for _, path := range []string{"/v1/project/update/wiki", "/v1/project/wiki", "/v1/project/wiki/sources"} {
		resp, err := admin.Do(t.Context(), http.MethodPost, path, map[string]any{"source": "http://10.0.0.1/", "allowPrivate": false,
			"collect": map[string]any{"web": map[string]any{"allowPrivate": false}}, "sources": []any{}})
		if err == nil {
			resp.Body.Close()
		}
	}
	// A form that is the visitor's to send leaves it as it is.
	if status, _, _ := b.send(base+"/sources", base+"/sources/further/inner/set", url.Values{"weight": {"2"}}); status != http.StatusSeeOther {
		t.Errorf("a weight: %d", status)
	}
	if status, text, _ := b.send(base+"/settings", base+"/settings/change", url.Values{"name": {"Wiki"}}); status != http.StatusSeeOther {
		t.Errorf("a name: %d\n%s", status, text)
	}
	p, err := h.app.stores.catalog.Project(t.Context(), "wiki")
	if err != nil || len(p.Sources) != 1 || !p.Collect.Web.AllowPrivate || p.Source != site+"/docs/" ||
		!p.Sources[0].Collect.Web.AllowPrivate || p.Sources[0].Weight != 2 || p.Name != "Wiki" {
		t.Errorf("%+v, %v", p, err)
	}
}
