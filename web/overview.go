package web

import "docent/api"

// index says what this is to whoever opens the address in a browser.
func (s *Server) index(v *visit) error {
	return s.render(v, "index", "Docent", nil)
}

// chooseProject lists the projects that the visitor may see, or leads to the only one.
func (s *Server) chooseProject(v *visit) error {
	all, err := s.Catalog.Projects(v.Context())
	if err != nil {
		return err
	}
	var mine []projectLink
	for _, p := range all {
		if v.who.role(p.Org).Valid() {
			mine = append(mine, projectLink{p, consolePath(p)})
		}
	}
	if len(mine) == 1 {
		return v.seeOther(mine[0].Path)
	}
	return s.render(v, "projects", "Projects", mine)
}

type projectLink struct {
	api.Project
	Path string
}

// overview is how a project fares.
func (s *Server) overview(v *visit) error {
	return s.render(v, "overview", v.project.Domain, nil)
}
