package work_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"docent/api"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/catalog/database"
	"docent/persistence/catalog/work"
)

const beforeReportWebhooks = "20261128000001"

// insert stores a row with its checksum.
func insert(t *testing.T, c *catalog.Catalog, row any) {
	t.Helper()
	switch r := row.(type) {
	case *work.ReportHookRow:
		database.SetChecksum(r)
	case *work.ReportRow:
		database.SetChecksum(r)
	}
	if _, err := c.Write.NewInsert().Model(row).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// report is a delivery as versions of before stored it.
func report(project api.ProjectID, week, status string, at time.Time, more string) *work.ReportRow {
	body := fmt.Sprintf(`{"id":"rpt_%[1]s_%[2]s","project":"%[1]s","week":"%[2]s","payload":{"type":"report.weekly","data":{"week":"%[2]s"}},`+
		`"status":"%[3]s","attempts":2,"next":"2026-11-23T09:00:00Z","createdAt":"%[4]s"%[5]s}`,
		project, week, status, at.Format(time.RFC3339), more)
	return &work.ReportRow{ID: fmt.Sprintf("rpt_%s_%s", project, week), Project: project, Status: status, Next: at.UnixMilli(),
		Created: at.UnixMilli(), Body: json.RawMessage(body)}
}

// Until this migration a project's weekly report had a webhook of its own.
func TestWebhooksOfReportsBecomeOutgoingOnes(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		ctx := t.Context()
		c := p.Open(catalog.Options{})
		for _, id := range []string{"docs", "blog", "shut", "none", "hurt"} {
			catalogtest.AddProject(t, c, id)
		}
		catalogtest.AddWebhook(t, c, api.Webhook{ID: "whk_1", Project: "none", URL: "https://other.example"}, 5)
		event := catalogtest.Event(6, "none", api.EventJobEnded, time.Now())
		if err := c.AddEvents(ctx, []api.WebhookEvent{event}, nil, 6); err != nil {
			t.Fatal(err)
		}
		catalogtest.TakeBack(t, c, beforeReportWebhooks)
		hook := func(project api.ProjectID, more string) *work.ReportHookRow {
			return &work.ReportHookRow{Project: project, Body: json.RawMessage(fmt.Sprintf(`{"project":"%[1]s","url":"https://%[1]s.example/x",`+
				`"secret":"%[1]s.s","createdAt":"2026-11-01T00:00:00Z","updatedAt":"2026-11-02T00:00:00Z"%[2]s}`, project, more))}
		}
		monday := time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)
		insert(t, c, hook("docs", `,"timeZone":"Europe/Berlin"`))
		insert(t, c, hook("blog", ""))
		insert(t, c, hook("shut", `,"off":true,"offReason":"the receiver answered 410 Gone"`))
		damaged := hook("hurt", "")
		insert(t, c, damaged)
		if _, err := c.Write.Exec("UPDATE report_hooks SET checksum = 1 WHERE project_id = 'hurt'"); err != nil {
			t.Fatal(err)
		}
		insert(t, c, report("docs", "2026-W45", "failed", monday.AddDate(0, 0, -14), `,"code":503,"error":"it answered 503"`))
		insert(t, c, report("docs", "2026-W46", "pending", monday.AddDate(0, 0, -7), `,"code":503,"error":"it answered 503"`))
		insert(t, c, report("docs", "2026-W47", "pending", monday, ""))
		insert(t, c, report("docs", "test", "pending", monday, `,"test":true`))
		insert(t, c, report("blog", "2026-W47", "delivered", monday, `,"code":204`))
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		c = p.Open(catalog.Options{})

		one := func(project api.ProjectID) api.WebhookStatus {
			t.Helper()
			list := catalogtest.Must(c.Webhooks(ctx, project))(t)
			if len(list) != 1 || !slices.Equal(list[0].Events, []api.EventKind{api.EventReportWeekly}) ||
				list[0].URL != "https://"+string(project)+".example/x" || list[0].Secret != string(project)+".s" ||
				!list[0].CreatedAt.Equal(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)) {
				t.Fatalf("%s has %+v", project, list)
			}
			return list[0]
		}
		docs := one("docs")
		var waiting []string
		for at := docs.State.Position; ; {
			ev, err := c.NextEvent(ctx, "docs", docs.Kinds(), at)
			if err != nil {
				break
			}
			waiting, at = append(waiting, ev.ID), ev.Position
			var said struct{ Data struct{ Week string } }
			if err := json.Unmarshal(ev.Payload, &said); err != nil || ev.ID != "rpt_docs_"+said.Data.Week || ev.Stream != "report/docs" {
				t.Errorf("it would be sent %+v: %v", ev, err)
			}
		}
		if !slices.Equal(waiting, []string{"rpt_docs_2026-W46", "rpt_docs_2026-W47"}) {
			t.Errorf("docs waits for %v", waiting)
		}
		if n := catalogtest.Must(c.Waiting(ctx, "blog", one("blog").Kinds(), one("blog").State.Position))(t); n != 0 {
			t.Errorf("blog is sent %d reports again", n)
		}
		if _, err := c.Event(ctx, "blog", "rpt_blog_2026-W47"); err != nil {
			t.Errorf("nobody knows that blog's report was made: %v", err)
		}
		if w := one("shut"); !w.Off || w.OffReason == "" {
			t.Errorf("a receiver that is gone is sent reports: %+v", w)
		}
		if list := catalogtest.Must(c.Webhooks(ctx, "hurt"))(t); len(list) != 0 {
			t.Errorf("a damaged row became %+v", list)
		}
		deliveries := catalogtest.Must(c.Deliveries(ctx, docs.ID, 10))(t)
		if len(deliveries) != 3 || deliveries[0].Status != api.DeliveryWaiting || deliveries[2].Status != api.DeliveryGivenUp ||
			deliveries[2].Code != 503 || deliveries[2].Attempts != 2 || deliveries[2].Event != "rpt_docs_2026-W45" {
			t.Errorf("the deliveries are %+v", deliveries)
		}
		for project, zone := range map[api.ProjectID]string{"docs": "Europe/Berlin", "blog": "", "none": ""} {
			if p := catalogtest.Must(c.Project(ctx, project))(t); p.TimeZone != zone {
				t.Errorf("the weeks of %s are those of %q", project, p.TimeZone)
			}
		}
		if w := catalogtest.Must(c.Webhook(ctx, "whk_1"))(t); w.State.Position != 5 {
			t.Errorf("the other webhook is at %d", w.State.Position)
		}
		if found := catalogtest.Problems(t, c); len(found) != 0 {
			t.Errorf("the catalog has problems: %v", found)
		}
	})
}

// A journal in which nothing has happened has no place for a report that waits: it is made again, since no event says that
// it was made.
func TestAReportThatWaitedIsMadeAgainIfTheJournalIsEmpty(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c := p.Open(catalog.Options{})
		catalogtest.AddProject(t, c, "docs")
		catalogtest.TakeBack(t, c, beforeReportWebhooks)
		insert(t, c, &work.ReportHookRow{Project: "docs", Body: json.RawMessage(`{"url":"https://docs.example/x","secret":"docs.s"}`)})
		insert(t, c, report("docs", "2026-W47", "pending", time.Now(), ""))
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		c = p.Open(catalog.Options{})
		if list := catalogtest.Must(c.Webhooks(t.Context(), "docs"))(t); len(list) != 1 || list[0].State.Position != 0 {
			t.Errorf("docs has %+v", list)
		}
		if _, err := c.Event(t.Context(), "docs", "rpt_docs_2026-W47"); err == nil {
			t.Error("the report is said to have been made")
		}
	})
}
