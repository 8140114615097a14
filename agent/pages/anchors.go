package pages

import (
	"docent/api"
	"docent/site/markup"
)

// Anchors are everything that a fragment may name on a page.
func (s *Site) Anchors(p *markup.Page) map[string]bool { return s.resolver().Anchors(p) }

// TakesIDs reports whether the site's generator reads {#id} behind a heading.
func (s *Site) TakesIDs() bool {
	return s.Generator.Kind == api.SiteMintlify || s.Generator.Kind == api.SiteDocusaurus ||
		s.Generator.Kind == api.SiteVitePress || s.Generator.Kind == api.SiteHugo
}
