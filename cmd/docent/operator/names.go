package operator

import "docent/cmd/docent/control"

// Names of operations, which a command and the server that it reaches agree on.
const (
	OpAutomationAdd    = "automation.add"
	OpAutomationList   = "automation.list"
	OpAutomationRemove = "automation.remove"
	OpAutomationRun    = "automation.run"

	OpBackup = "backup"

	OpCatalogRebuild = "catalog.rebuild"
	OpCatalogCheck   = "catalog.check"
	OpCatalogAccept  = "catalog.accept"

	OpEvaluate        = "search.evaluate"
	OpEvaluateAnswers = "answers.evaluate"
	OpEvaluateRated   = "answers.rated"

	OpJournalCheck = "journal.check"
	OpJournalShow  = "journal.show"

	OpKeyLocal  = "key.local"
	OpKeyCreate = "key.create"
	OpKeyList   = "key.list"
	OpKeyRevoke = "key.revoke"
	OpKeyRotate = "key.rotate"

	OpConsoleLink  = "console.link"
	OpPersonAdd    = "person.add"
	OpPersonList   = "person.list"
	OpPersonRole   = "person.role"
	OpPersonMake   = "person.operator"
	OpPersonRemove = "person.remove"
	OpPersonEnable = "person.enable"
	OpPersonLink   = "person.link"
	OpAuditList    = "audit.list"

	OpProjectAdd    = "project.add"
	OpProjectSet    = "project.set"
	OpProjectList   = "project.list"
	OpProjectRemove = "project.remove"
	OpProjectCheck  = "project.check"
	OpIndex         = "index"

	OpPullList  = "pull.list"
	OpPullDiff  = "pull.diff"
	OpPullMerge = "pull.merge"
	OpPullClose = "pull.close"

	OpReaderSecretCreate = "readersecret.create"
	OpReaderSecretList   = "readersecret.list"
	OpReaderSecretRetire = "readersecret.retire"
	OpProjectToken       = "project.token"
	OpProjectHook        = "project.webhook"
	OpProjectChat        = "project.chat"

	OpSeed = "bench.seed"

	OpSourceAdd    = "source.add"
	OpSourceSet    = "source.set"
	OpSourceList   = "source.list"
	OpSourceRemove = "source.remove"
	OpSourceRead   = "source.read"
	OpSourceUpload = "source.upload"

	OpActorRetry = "actor.retry"
	OpAddress    = control.Address
	OpStatus     = "status"

	OpThreadList   = "thread.list"
	OpThreadDelete = "thread.delete"

	OpWebhookAdd        = "webhook.add"
	OpWebhookList       = "webhook.list"
	OpWebhookRemove     = "webhook.remove"
	OpWebhookPause      = "webhook.pause"
	OpWebhookRotate     = "webhook.rotate"
	OpWebhookTest       = "webhook.test"
	OpWebhookReplay     = "webhook.replay"
	OpWebhookDeliveries = "webhook.deliveries"
)
