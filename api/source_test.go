package api

import (
	"errors"
	"slices"
	"testing"
	"time"
)

func several() Project {
	return Project{ID: "docs", Domain: "docs.example.com", Source: "/docs", Host: HostGitHub, Repository: "acme/docs",
		TokenEnv: "ACME_TOKEN", Sources: []Source{
			{Label: "Blog", Kind: SourceZip, Groups: []string{"staff", ""}},
			{Label: "issues", Kind: SourceIssues, Address: "https://github.com/acme/product/", Every: "2h"},
			{Label: "api", Address: "/api", Weight: 2},
		}}
}

func TestAFurtherSourceIsAProjectOfItsOwn(t *testing.T) {
	p := several().WithDefaults()
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	issues := p.Of("issues")
	if issues.ID != "docs@issues" || issues.Repository != "acme/product" || issues.Host != HostGitHub ||
		issues.TokenEnv != "ACME_TOKEN" || issues.Interval() != 2*time.Hour || len(issues.Sources) != 0 {
		t.Errorf("issues: %+v", issues)
	}
	if project, label := SplitSource(issues.ID); project != "docs" || label != "issues" {
		t.Errorf("%s is of %s, %s", issues.ID, project, label)
	}
	if own := p.Of("docs"); own.ID != "docs" {
		t.Errorf("the first source is %s", own.ID)
	}
	if none := p.Of("wiki"); none.ID != "" {
		t.Errorf("a label that the project does not have is %s", none.ID)
	}
	if api := p.Of("api"); api.TokenEnv != "" || api.Host != HostBuiltin {
		t.Errorf("a folder has the project's credentials: %+v", api)
	}
	if parts := p.Parts(); len(parts) != 4 || parts[0].ID != "docs" || parts[3].ID != "docs@api" {
		t.Errorf("parts: %d", len(parts))
	}
}

// A token goes to the host that it was made for, and to no other.
func TestAProjectsTokenIsForItsOwnHost(t *testing.T) {
	p := several()
	p.Sources[1].Address = "https://ghe.example.com/acme/product"
	if got := p.WithDefaults().Of("issues"); got.TokenEnv != "" || got.HostURL != "https://ghe.example.com" {
		t.Errorf("issues elsewhere: %+v", got)
	}
}

func TestASourceIsForItsGroups(t *testing.T) {
	p := several().WithDefaults()
	blog, _ := p.Further("blog")
	if blog.For(nil) || blog.For([]string{"partners"}) || !blog.For([]string{"partners", "staff"}) {
		t.Error("the audience is not kept to")
	}
	if api, _ := p.Further("api"); !api.For(nil) || api.Counts() != 2 {
		t.Error("a source without an audience is not everybody's, or its weight is lost")
	}
	if issues, _ := p.Further("issues"); issues.Counts() >= 1 {
		t.Error("issues count like documentation")
	}
}

func TestWrongSourcesAreNamedByTheirField(t *testing.T) {
	for want, change := range map[string]func(*Project){
		"label":               func(p *Project) { p.Label = "a b" },
		"sources[0].label":    func(p *Project) { p.Sources[0].Label = "docs" },
		"sources[2].label":    func(p *Project) { p.Sources[2].Label = "../x" },
		"sources[2].address":  func(p *Project) { p.Sources[2].Address = "" },
		"sources[2].weight":   func(p *Project) { p.Sources[2].Weight = -1 },
		"sources[1].every":    func(p *Project) { p.Sources[1].Every = "1s" },
		"sources[0].kind":     func(p *Project) { p.Sources[0].Kind = "wiki" },
		"sources[2].docsDir":  func(p *Project) { p.Sources[2].DocsDir = "../up" },
		"sources[2].tokenEnv": func(p *Project) { p.Sources[2].TokenEnv = "ghp_x-y" },
		"repository":          func(p *Project) { p.Kind, p.Repository, p.Source = SourceIssues, "", "" },
	} {
		p := several()
		change(&p)
		var invalid *InvalidError
		if err := p.WithDefaults().Validate(); !errors.As(err, &invalid) ||
			!slices.ContainsFunc(invalid.Problems, func(q Problem) bool { return q.Field == want }) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
