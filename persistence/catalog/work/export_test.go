package work

const (
	DeliveriesKept = deliveriesKept
	RunsKept       = runsKept
	UpdatesKept    = updatesKept
	WebhooksMost   = webhooksMost
)
