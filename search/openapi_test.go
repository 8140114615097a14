package search

import (
	"slices"
	"strings"
	"testing"

	"docent/api"
)

const petsAPI = `openapi: 3.1.0
info: {title: Pet shop, description: "# Intro\nAll about pets."}
servers: [{url: https://api.example.com/v1}]
tags: [{name: Pets, description: Those that are for sale.}]
paths:
  /pets/{petId}:
    get:
      tags: [Pets]
      operationId: getPet
      summary: Get a pet
      description: "Reads one pet.\n\n## Limits\nTen a second, as {{plan}} says."
      parameters:
        - {name: petId, in: path, required: true, schema: {type: string}, description: "the pet | its id"}
        - {name: fields, in: query, schema: {type: array, items: {type: string}, default: all}}
      responses: {'200': {description: The pet}, '404': {description: No such pet}}
  /pets:
    post:
      tags: [Pets]
      summary: Add a pet
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}}}}
components:
  schemas:
    Pet:
      required: [name]
      properties:
        name: {type: string, description: what it is called}
        kind: {type: string, enum: [cat, dog]}
        owner: {type: object, properties: {email: {type: string}}}
`

// An operation is a page with its parameters as a table and an example, whatever the document is called, and cites the
// page of the site that shows it.
func TestOperationsArePagesThatCiteThoseOfTheSite(t *testing.T) {
	t.Parallel()
	l := openTest(t, Options{})
	files := map[string]string{
		"docs.json":          "{}",
		"reference/shop.yml": petsAPI,
		"reference/get.mdx":  "---\ntitle: Read a pet\nopenapi: reference/shop.yml GET /pets/{petId}\n---\n",
		"package.json":       `{"name": "x", "openapi": "no version", "keywords": ["bandicoot"]}`,
		"settings.yaml":      "nested:\n  openapi: 3.0.0\nwords: bandicoot\n",
	}
	for round := range 2 { // the second time from what the index holds
		files["index.mdx"] = "---\ntitle: Home\n---\nWelcome " + strings.Repeat("again ", round)
		report, err := l.Update(t.Context(), api.Project{ID: "p", SiteURL: "https://x.com"},
			&memTree{commit: files["index.mdx"], files: files}, nil)
		if err != nil || report.Pages != 5 {
			t.Fatalf("%d pages, %v", report.Pages, err)
		}
		hits, err := l.Search(t.Context(), "p", Query{Text: "get a pet", Limit: 1})
		if err != nil || len(hits) == 0 {
			t.Fatalf("%v, %v", hits, err)
		}
		const want = "Reads one pet.\n\n##### Limits\nTen a second, as \\{{plan}} says.\n\nParameters:\n\n" +
			"| Name | In | Type | Required | Description |\n| --- | --- | --- | --- | --- |\n" +
			"| `petId` | path | string | yes | the pet \\| its id |\n| `fields` | query | array of string | no | Default: `all`. |\n\n" +
			"Responses:\n\n| Status | Description |\n| --- | --- |\n| `200` | The pet |\n| `404` | No such pet |\n\n" +
			"Example:\n\n```bash\ncurl 'https://api.example.com/v1/pets/{petId}'\n```"
		if h := hits[0]; h.Path != "reference/shop.yml/getPet" || h.Title != "GET /pets/{petId}: Get a pet" ||
			!slices.Equal(h.Crumbs, []string{"Pet shop", "Pets"}) || h.URL != "https://x.com/reference/get" || !strings.HasPrefix(h.Content, want) {
			t.Errorf("found %s %q %q %s:\n%s\nnot\n%s", h.Path, h.Title, h.Crumbs, h.URL, h.Content, want)
		}
		hits, err = l.Search(t.Context(), "p", Query{Text: "what is it called", Limit: 5})
		if err != nil || len(hits) == 0 || hits[0].URL != "https://x.com/reference/shop.yml" ||
			!strings.Contains(hits[0].Content,
				"| `kind` | string | no | One of `cat`, `dog`. |\n| `name` | string | yes | what it is called |\n| `owner` | object | no |  |\n| `owner.email` | string | no |  |") {
			t.Errorf("%+v, %v", hits, err)
		}
		// the page that shows nothing but the operation is found by that
		for _, text := range []string{"bandicoot", "read a pet"} {
			hits, err := l.Search(t.Context(), "p", Query{Text: text, Limit: 5})
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range hits {
				if h.Path == "reference/get.mdx" || text == "bandicoot" {
					t.Errorf("%s finds %s", text, h.Path)
				}
			}
		}
	}
}

// Pages that Mintlify makes of a description in the navigation are cited, too. What is marked as not public is in no
// answer.
func TestOperationsInTheNavigationCiteThePagesMadeOfThem(t *testing.T) {
	t.Parallel()
	for docs, want := range map[string]string{
		`{"navigation": {"tabs": [{"tab": "API", "openapi": "/reference/shop.yml"}]}}`:                                                  "https://x.com/api-reference/pets/add-a-pet",
		`{"navigation": {"groups": [{"group": "API", "openapi": {"source": "reference/shop.yml", "directory": "/api"}, "pages": []}]}}`: "https://x.com/api/pets/add-a-pet",
		`{"navigation": {"groups": [{"group": "API", "openapi": ["other.yml"]}]}}`:                                                      "https://x.com/reference/shop.yml",
	} {
		l := openTest(t, Options{})
		spec := strings.Replace(petsAPI, "  /pets:\n",
			"  /hidden:\n    get: {summary: Pet of the bandicoot, x-hidden: true}\n  /pets:\n", 1)
		files := map[string]string{"docs.json": "{}", "reference/shop.yml": spec, "index.mdx": "Welcome"}
		for _, files["docs.json"] = range []string{"{}", docs} { // the second one changes no page
			if _, err := l.Update(t.Context(), api.Project{ID: "p", SiteURL: "https://x.com"},
				&memTree{commit: files["docs.json"], files: files}, nil); err != nil {
				t.Fatal(err)
			}
		}
		hits, err := l.Search(t.Context(), "p", Query{Text: "add a pet", Limit: 1})
		if err != nil || len(hits) != 1 || hits[0].URL != want {
			t.Errorf("found %+v, not %s: %v", hits, want, err)
		}
		if hits, err := l.Search(t.Context(), "p", Query{Text: "bandicoot"}); err != nil || len(hits) > 0 {
			t.Errorf("found %+v, %v", hits, err)
		}
	}
}

// Each operation can be read by its own path and by the address of the page that shows it, follows its document one by
// one, and goes with it.
func TestOperationsAreReadAndFollowedOneByOne(t *testing.T) {
	t.Parallel()
	l := openTest(t, Options{})
	files := map[string]string{
		"docs.json":          "{}",
		"reference/shop.yml": petsAPI,
		"reference/get.mdx":  "---\ntitle: Read a pet\nopenapi: reference/shop.yml GET /pets/{petId}\n---\n",
	}
	update := func(commit string) Report {
		t.Helper()
		report, err := l.Update(t.Context(), api.Project{ID: "p", SiteURL: "https://x.com"},
			&memTree{commit: commit, files: files}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	same := func(what string, got, want []string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, not %q", what, got, want)
		}
	}
	update("1")
	for _, name := range []string{"reference/shop.yml/getPet", "/reference/get", "https://x.com/reference/get"} {
		if p, err := l.Page(t.Context(), "p", name, nil); err != nil || p.Title != "GET /pets/{petId}: Get a pet" ||
			p.URL != "https://x.com/reference/get" || strings.Contains(p.Content, "Add a pet") {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	added, err := l.Page(t.Context(), "p", "reference/shop.yml/post-pets", nil)
	if err != nil || !strings.Contains(added.Content, "Example:\n\n```bash\ncurl -X POST 'https://api.example.com/v1/pets' \\\n"+
		"  -H 'Content-Type: application/json' \\\n  -d '{\n  \"kind\": \"cat\",\n  \"name\": \"string\",") {
		t.Errorf("%s, %v", added.Content, err)
	}
	if whole, err := l.Page(t.Context(), "p", "reference/shop.yml", nil); err != nil ||
		!strings.Contains(whole.Content, "## Pets\n\nThose that are for sale.\n\n- POST /pets: Add a pet\n- GET /pets/{petId}: Get a pet") {
		t.Errorf("%s, %v", whole.Content, err)
	}
	files["reference/shop.yml"] = strings.Replace(petsAPI, "No such pet", "There is none", 1)
	report := update("2")
	same("modified", report.Modified, []string{"reference/shop.yml", "reference/shop.yml/getPet"})
	files["index.mdx"] = "Welcome"
	report = update("3")
	same("modified", report.Modified, nil)
	same("removed", report.Removed, nil)
	if hits, err := l.Search(t.Context(), "p", Query{Text: "there is none"}); err != nil || len(hits) == 0 ||
		hits[0].Path != "reference/shop.yml/getPet" {
		t.Errorf("found %+v, %v", hits, err)
	}
	files["reference/shop.yml"] = strings.Replace(petsAPI, "    post:", "    x-post:", 1)
	report = update("4")
	same("removed", report.Removed, []string{"reference/shop.yml/post-pets"})
	delete(files, "reference/shop.yml")
	report = update("5")
	same("removed", report.Removed, []string{"reference/shop.yml", "reference/shop.yml/getPet"})
}
