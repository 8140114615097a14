package server

import (
	"testing"

	"docent/api"
	"docent/cmd/docent/config"
)

// A stranger's question about Docent must not have the server crawl its own public address.
func TestAQuestionAboutDocentReadsNoSite(t *testing.T) {
	c := config.Default()
	c.PublicURL = "https://docent.acme.dev"
	if site, read := manualProject(c, "docs").WithDefaults().ReadsSite(api.Project{}).Published(); read {
		t.Errorf("%s is read", site.Source)
	}
}
