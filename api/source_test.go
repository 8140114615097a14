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
	p = several()
	p.TokenFile = "docs.0123456789abcdef"
	code := func(address string) Project {
		p.Sources = []Source{{Label: "code", Kind: SourceCode, Host: HostGitHub, Repository: "acme/tool", Address: address}}
		return p.WithDefaults().Of("code")
	}
	for address, gets := range map[string]bool{"": true, "https://github.com/acme/tool.git": true, "git@github.com:acme/tool.git": true,
		"https://evil.example/acme/tool.git": false, "http://github.com/acme/tool.git": false, "https://github.com:8443/acme/tool.git": false} {
		if got := code(address); (got.TokenFile != "") != gets {
			t.Errorf("%q is sent the project's token: %v (%+v)", address, !gets, got)
		}
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

// What did not come from the operator's command line neither gives nor takes private addresses, nor moves where they lead.
func TestOnlyTheCommandLineAllowsPrivateAddresses(t *testing.T) {
	web := Source{Label: "site", Kind: SourceWeb, Address: "https://wiki.example.com/docs/"}
	private := web
	private.Collect.Web.AllowPrivate = true
	project := func(s Source) Project {
		return Project{Kind: s.Kind, Source: s.Address, Collect: s.Collect, Sources: []Source{s}}.WithDefaults()
	}
	changed := func(s Source, change func(*Source)) Source { change(&s); return s }
	for name, c := range map[string]struct {
		before, after Source
		field         string
	}{
		"nothing":       {web, web, ""},
		"it stays":      {private, private, ""},
		"weight":        {private, changed(private, func(s *Source) { s.Weight, s.Groups, s.Every = 2, []string{"staff"}, "2h" }), ""},
		"given":         {web, private, "collect.web.allowPrivate"},
		"taken":         {private, web, "collect.web.allowPrivate"},
		"moved":         {private, changed(private, func(s *Source) { s.Address = "http://10.0.0.1/" }), "address"},
		"another kind":  {private, changed(private, func(s *Source) { s.Kind = SourceFiles }), "address"},
		"sitemap":       {private, changed(private, func(s *Source) { s.Collect.Web.Sitemap = "http://10.0.0.1/" }), "collect.web"},
		"prefix":        {private, changed(private, func(s *Source) { s.Collect.Web.Prefix = "/" }), "collect.web"},
		"public moved":  {web, changed(web, func(s *Source) { s.Address = "https://other.example.com/" }), ""},
		"label in caps": {private, changed(private, func(s *Source) { s.Label = " SITE " }), ""},
		"another label": {private, changed(private, func(s *Source) { s.Label = "second" }), "collect.web.allowPrivate"},
	} {
		fields := func(err error) (out []string) {
			var invalid *InvalidError
			if errors.As(err, &invalid) {
				for _, problem := range invalid.Problems {
					out = append(out, problem.Field)
				}
			}
			return out
		}
		var want []string
		if c.field != "" {
			want = []string{c.field}
		}
		if got := fields(c.after.KeepsPrivate(project(c.before))); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if c.field == "address" {
			want = []string{"source"}
		}
		if c.after.Label != "second" {
			if got := fields(project(c.after).KeepsPrivate(project(c.before))); !slices.Equal(got, want) {
				t.Errorf("%s of the project's own source: %q, want %q", name, got, want)
			}
		}
	}
}

// A project from before the site could be read is stored without the word that says so, and nothing changes for it.
func TestASiteIsReadWhereSomebodySaidSo(t *testing.T) {
	for _, c := range []struct {
		from        AnswersFrom
		site, after string
		kind        SourceKind
		read        bool
	}{
		{FromNothingElse, "https://docs.acme.dev", "", SourceFiles, false}, {FromSourceOnly, "https://docs.acme.dev", "source-only", SourceFiles, false},
		{FromBetter, "https://docs.acme.dev", "auto", SourceFiles, true}, {FromSource, "https://docs.acme.dev", "source", SourceFiles, true},
		{FromSite, "", "site", SourceFiles, false}, {FromSite, "https://docs.acme.dev", "site", SourceWeb, false},
	} {
		p := Project{ID: "docs", SiteURL: c.site, AnswersFrom: c.from, Kind: c.kind}
		site, ok := p.Published()
		if ok != c.read || ok && (site.ID != "docs@@site" || site.Source != c.site || p.Of(site.Label).ID != site.ID || len(p.Parts()) != 2) {
			t.Errorf("%+v: %+v", c, site)
		}
		if again := p.ReadsSite(p); again.AnswersFrom != c.from {
			t.Errorf("%+v: an address that stays makes it %q", c, again.AnswersFrom)
		}
	}
	for address, want := range map[string]AnswersFrom{"https://docs.acme.dev": FromBetter, "https://docs.example.com": "", "https://acme.example/docs": "", "": ""} {
		if p := (Project{SiteURL: address}).ReadsSite(Project{}); p.AnswersFrom != want {
			t.Errorf("a new address %s makes it %q, not %q", address, p.AnswersFrom, want)
		}
	}
	private := Project{SiteURL: "https://docs.acme.dev", Collect: Collect{Web: WebOptions{AllowPrivate: true}}}
	other := private
	other.SiteURL = "http://10.0.0.1/"
	if other.KeepsPrivate(private) == nil || private.KeepsPrivate(private) != nil {
		t.Error("a page may point a site that may be private elsewhere")
	}
}
