package work

type (
	ReportHookRow = reportHookRow
	ReportRow     = reportRow
)

const (
	DeliveriesKept = deliveriesKept
	RunsKept       = runsKept
	UpdatesKept    = updatesKept
	WebhooksMost   = webhooksMost
)
