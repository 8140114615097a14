package catalogtest

import (
	"fmt"
	"testing"
	"time"

	"docent/api"
	"docent/persistence/catalog"
	"docent/persistence/catalog/database"
)

// Project is a project that may be added.
func Project(id string) api.Project {
	return api.Project{ID: api.ProjectID(id), Domain: id + ".example.com", Source: "/srv/docs"}
}

// AddProject adds Project.
func AddProject(t *testing.T, c *catalog.Catalog, id string) api.Project {
	t.Helper()
	return Must(c.AddProject(t.Context(), Project(id)))(t)
}

// AddOrganization adds an organization.
func AddOrganization(t *testing.T, c *catalog.Catalog, id api.OrgID) {
	t.Helper()
	row := &database.OrganizationRow{ID: id, Name: string(id), CreatedAt: database.Stamp(c.Now())}
	database.SetChecksum(row)
	if _, err := c.Write.NewInsert().Model(row).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Problems are the rows that a check finds damaged.
func Problems(t *testing.T, c *catalog.Catalog) (found []string) {
	t.Helper()
	rows, err := c.Check(t.Context(), func(p catalog.Problem) bool {
		found = append(found, p.Table+"/"+p.Row)
		return true
	})
	if err != nil || rows == 0 {
		t.Fatalf("%d rows, %v", rows, err)
	}
	return found
}

// AddPerson adds a person of the default organization.
func AddPerson(t *testing.T, c *catalog.Catalog, name string, role api.Role) api.Person {
	t.Helper()
	return Must(c.AddPerson(t.Context(), api.Person{Email: name + "@example.com", Name: name,
		Roles: map[api.OrgID]api.Role{api.DefaultOrg: role}}, "kept"))(t)
}

// Pull is a pull request that may be added.
func Pull(project, head string) api.PullRequest {
	return api.PullRequest{Project: api.ProjectID(project), Head: head, Base: "main", Title: "Rename", Body: "a *body*\n",
		Job: "job_1"}
}

// Event is an event of webhooks.
func Event(n int, project string, kind api.EventKind, at time.Time) api.WebhookEvent {
	return api.WebhookEvent{ID: fmt.Sprintf("evt_%s_%d", project, n), Position: uint64(n), Project: api.ProjectID(project), Kind: kind,
		Stream: fmt.Sprintf("job/%d", n), At: database.Stamp(at), Payload: []byte(fmt.Sprintf(`{"b": %d,"a":  "<&>"}`, n))}
}

// AddWebhook adds a webhook that begins after a position.
func AddWebhook(t *testing.T, c *catalog.Catalog, w api.Webhook, position uint64) {
	t.Helper()
	if err := c.AddWebhook(t.Context(), w, position); err != nil {
		t.Fatal(err)
	}
}
