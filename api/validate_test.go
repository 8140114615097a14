package api

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestProjectSettings(t *testing.T) {
	base := Project{ID: "docs", Domain: "docs.example.com", Source: "/srv/docs", Host: HostBuiltin}
	github := base
	github.Host, github.Repository, github.TokenEnv = HostGitHub, "acme/docs", "GITHUB_TOKEN"
	with := func(p Project, change func(*Project)) Project { change(&p); return p }
	for name, c := range map[string]struct {
		project Project
		want    []string
	}{
		"the least that is needed": {base, nil},
		"nothing":                  {Project{}, []string{"domain", "host", "id", "source"}},
		"everything": {with(github, func(p *Project) {
			p.Name, p.Branch, p.DocsDir, p.SiteURL, p.Deflection = "Acme — Dokumentation", "release/2.x", "docs/en",
				"https://docs.acme.com/v2", "help@acme.com"
			p.HostURL, p.Model = "https://github.acme.com", "gpt"
		}), nil},
		"pull requests of its own form": {with(base, func(p *Project) {
			p.Pulls = PullForm{Author: "Docs Bot <docs+bot@acme.example>", SignOff: true, Title: "docs({scope}): {title}",
				Draft: true, Body: "Part of #1\n\n{report}", Reviewers: "@ann, acme/writers, codeowners, code-authors"}
		}), nil},
		"sign-off of an app": {with(github, func(p *Project) { p.AppID, p.Pulls.SignOff = 17, true }), nil},
		"pull requests of no form": {with(base, func(p *Project) {
			p.Pulls = PullForm{Author: "docs@acme.example", Title: "docs", Body: strings.Repeat("x", 13<<10), Reviewers: "ann lea"}
		}), []string{"pulls.author", "pulls.body", "pulls.reviewers", "pulls.title"}},
		"author of two lines": {with(base, func(p *Project) { p.Pulls.Author = "A\nB <a@acme.example>" }),
			[]string{"pulls.author"}},
		"author of an address that no mail reaches": {with(base, func(p *Project) { p.Pulls.Author = "A <a@localhost>" }),
			[]string{"pulls.author"}},
		"sign-off of nobody":           {with(base, func(p *Project) { p.Pulls.SignOff = true }), []string{"pulls.signOff"}},
		"identifier like an object id": {with(base, func(p *Project) { p.ID = "65f1c0ffee0123456789abcd" }), nil},
		"identifier that leaves":       {with(base, func(p *Project) { p.ID = "../etc" }), []string{"id"}},
		"identifier with a slash":      {with(base, func(p *Project) { p.ID = "a/b" }), []string{"id"}},
		"identifier .git":              {with(base, func(p *Project) { p.ID = "x.GIT" }), []string{"id"}},
		"identifier too long": {with(base, func(p *Project) { p.ID = ProjectID(strings.Repeat("x", 65)) }),
			[]string{"id"}},
		"domain of one part":         {with(base, func(p *Project) { p.Domain = "docs" }), nil},
		"domain with a port":         {with(base, func(p *Project) { p.Domain = "docs:80" }), []string{"domain"}},
		"domain in capitals":         {with(base, func(p *Project) { p.Domain = "Docs" }), []string{"domain"}},
		"domain with an empty part":  {with(base, func(p *Project) { p.Domain = "docs..com" }), []string{"domain"}},
		"docs folder outside":        {with(base, func(p *Project) { p.DocsDir = "../docs" }), []string{"docsDir"}},
		"docs folder goes up inside": {with(base, func(p *Project) { p.DocsDir = "a/../../b" }), []string{"docsDir"}},
		"docs folder absolute":       {with(base, func(p *Project) { p.DocsDir = "/docs" }), []string{"docsDir"}},
		"docs folder of git":         {with(base, func(p *Project) { p.DocsDir = "a/.Git/b" }), []string{"docsDir"}},
		"docs folder with dots":      {with(base, func(p *Project) { p.DocsDir = "..docs/v1..v2" }), nil},
		"branch that git refuses":    {with(base, func(p *Project) { p.Branch = "a..b" }), []string{"branch"}},
		"branch like an option":      {with(base, func(p *Project) { p.Branch = "-f" }), []string{"branch"}},
		"source over ssh":            {with(base, func(p *Project) { p.Source = "git@github.com:acme/docs.git" }), nil},
		"source with ssh user":       {with(base, func(p *Project) { p.Source = "ssh://git@host/acme/docs.git" }), nil},
		"source with a helper":       {with(base, func(p *Project) { p.Source = "ext::sh -c id" }), []string{"source"}},
		"source like an option":      {with(base, func(p *Project) { p.Source = "--upload-pack=id" }), []string{"source"}},
		"source of another kind":     {with(base, func(p *Project) { p.Source = "ftp://host/docs" }), []string{"source"}},
		"site without a scheme":      {with(base, func(p *Project) { p.SiteURL = "docs.acme.com" }), []string{"siteUrl"}},
		"site that runs a script": {with(base, func(p *Project) { p.SiteURL = "javascript:alert(1)" }),
			[]string{"siteUrl"}},
		"a wrong chat token":      {with(base, func(p *Project) { p.Chats.Discord.TokenFile = "../x" }), []string{"chats"}},
		"wrong tokens":            {with(base, func(p *Project) { p.TokenFile, p.WebhookFile = "../x", "../y" }), []string{"tokenFile", "webhookFile"}},
		"a form":                  {with(base, func(p *Project) { p.Widget.Contact = ContactForm }), nil},
		"issues of nothing":       {with(base, func(p *Project) { p.Widget.Contact, p.Widget.ContactIssues = ContactForm, true }), []string{"widget.contactIssues"}},
		"issues without a form":   {with(github, func(p *Project) { p.Widget.ContactIssues = true }), []string{"widget.contactIssues"}},
		"issues of a form":        {with(github, func(p *Project) { p.Widget.Contact, p.Widget.ContactIssues = ContactForm, true }), nil},
		"a logo on the site":      {with(base, func(p *Project) { p.Widget.Logo = "/logo.svg" }), nil},
		"a logo that is code":     {with(base, func(p *Project) { p.Widget.Logo = "javascript:alert(1)" }), []string{"widget.logo"}},
		"open in what is there":   {with(base, func(p *Project) { p.Widget.OpenIn = []string{"claude", "other"} }), []string{"widget.openIn[1]"}},
		"deflection to a page":    {with(base, func(p *Project) { p.Deflection = "https://acme.com/contact" }), nil},
		"readers over plain http": {with(base, func(p *Project) { p.ReaderSignIn = "http://docs.acme.com/docent" }), []string{"readerSignIn"}},
		"readers over https":      {with(base, func(p *Project) { p.ReaderSignIn = "https://docs.acme.com/docent" }), nil},
		"readers of this machine": {with(base, func(p *Project) { p.ReaderSignIn = "http://127.0.0.1:8080/docent" }), nil},
		"deflection to nowhere":   {with(base, func(p *Project) { p.Deflection = "ask Bob" }), []string{"deflection"}},
		"github without settings": {with(base, func(p *Project) { p.Host = HostGitHub }),
			[]string{"repository", "tokenEnv"}},
		"github with a group":    {with(github, func(p *Project) { p.Repository = "a/b/c" }), []string{"repository"}},
		"gitlab with a group":    {with(github, func(p *Project) { p.Host, p.Repository = HostGitLab, "a/b/c" }), nil},
		"gitea without a server": {with(github, func(p *Project) { p.Host = HostGitea }), []string{"hostUrl"}},
		"repository of a plain remote": {with(github, func(p *Project) { p.Host, p.Repository = HostGit, "acme docs" }),
			[]string{"repository"}},
		"named repository built in": {with(base, func(p *Project) { p.Repository = "acme/docs" }), nil},
		"unknown host":              {with(base, func(p *Project) { p.Host = "svn" }), []string{"host"}},
		"token in place of its name": {with(github, func(p *Project) { p.TokenEnv = "ghp-0123/abc" }),
			[]string{"tokenEnv"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fields(t, c.project.Validate()); !slices.Equal(got, c.want) {
				t.Errorf("problems with %q, want %q", got, c.want)
			}
		})
	}
}

func TestProjectProblemsDoNotRepeatSecrets(t *testing.T) {
	p := Project{ID: "docs", Domain: "docs", Host: HostGitHub, Repository: "acme/docs"}
	p.Source = "https://x:hunter2@github.com/acme/docs"
	p.HostURL = "https://x:hunter2@github.com"
	p.SiteURL = "https://x:hunter2@docs.acme.com"
	p.TokenEnv = "hunter2!"
	err := p.Validate()
	if got, want := fields(t, err), []string{"hostUrl", "siteUrl", "source", "tokenEnv"}; !slices.Equal(got, want) {
		t.Errorf("problems with %q, want %q", got, want)
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error shows the password: %v", err)
	}
}

func TestProjectDefaults(t *testing.T) {
	got := Project{ID: "docs", Domain: " Docs.Example.COM ", DocsDir: "./docs/", Source: "/srv",
		Repository: "/acme/docs.git", SiteURL: "https://a.example/"}.WithDefaults()
	want := Project{ID: "docs", Domain: "docs.example.com", DocsDir: "docs", Source: "/srv", Repository: "acme/docs",
		SiteURL: "https://a.example", Host: HostBuiltin}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := (Project{Exclude: []string{" a ", ""}}).WithDefaults().Exclude; !slices.Equal(got, []string{"a"}) {
		t.Errorf("patterns %q", got)
	}
	if got := (Project{DocsDir: "."}).WithDefaults().DocsDir; got != "" {
		t.Errorf("the docs folder %q stands for the root", got)
	}
}

func TestTitlesOfPullRequests(t *testing.T) {
	for _, c := range []struct{ pattern, scope, want string }{
		{"", "api", "docs: rename the page"},
		{"docs({scope}): {title}", "api", "docs(api): rename the page"},
		{"docs({scope}): {title}", "", "docs: rename the page"},
		{"docs(website): {title}", "api", "docs(website): rename the page"},
		{"[{scope}] {title}", "api", "[api] rename the page"},
		{"DOC-1: {title} [skip ci]", "api", "DOC-1: rename the page [skip ci]"},
	} {
		if got := (PullForm{Title: c.pattern}).Titled("rename the page", c.scope); got != c.want {
			t.Errorf("%q with %q: %q, want %q", c.pattern, c.scope, got, c.want)
		}
	}
}
