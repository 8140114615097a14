package catalog

import (
	"docent/persistence/catalog/database"
	"docent/persistence/catalog/insights"
	"docent/persistence/catalog/listing"
	"docent/persistence/catalog/nodes"
	"docent/persistence/catalog/people"
	"docent/persistence/catalog/work"
)

// Names of the parts that callers in cmd and web know by the name of the whole.
type (
	Options           = database.Options
	Identity          = database.Identity
	Problem           = database.Problem
	KeyQuery          = people.KeyQuery
	PullQuery         = work.PullQuery
	JobQuery          = listing.JobQuery
	Projector         = listing.Projector
	AnalyticsQuery    = insights.AnalyticsQuery
	QuestionTotals    = insights.QuestionTotals
	CallerCount       = insights.CallerCount
	SearchCount       = insights.SearchCount
	CitedPage         = insights.CitedPage
	PageReads         = insights.PageReads
	Day               = insights.Day
	ConversationQuery = insights.ConversationQuery
	Conversation      = insights.Conversation
	Bound             = nodes.Bound
	Counts            = nodes.Counts
	Shared            = nodes.Shared
	Lease             = nodes.Lease
)

// Names under which the journal is followed, and the position of whatever it holds last.
const (
	JobListing      = listing.JobListing
	QuestionListing = listing.QuestionListing
	WebhookFollower = database.WebhookFollower
	Newest          = listing.Newest
)

// ErrCorrupt says that a stored row, or the whole file, is damaged.
var ErrCorrupt = database.ErrCorrupt
