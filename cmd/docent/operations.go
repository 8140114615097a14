package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"docent/persistence/journal"
)

// operations are what an operator does to a data directory. They act on the stores of the process that they run in.
type operations struct {
	stores  *stores
	app     *app       // where they run in the serving process
	journal *inspected // where the journal's file is looked at and nothing else is open
}

// An operation has its parameters and its result as JSON.
type operation func(o *operations, ctx context.Context, params json.RawMessage, progress Progress) (json.RawMessage,
	error)

// namedOperations is every operation by its name, which the commands and the server that they reach agree on.
var namedOperations = map[string]operation{
	opProjectAdd:    perform((*operations).addProject),
	opProjectSet:    perform((*operations).setProject),
	opProjectList:   perform((*operations).listProjects),
	opProjectCheck:  perform((*operations).checkProject),
	opProjectRemove: perform((*operations).removeProject),
	opProjectToken:  perform((*operations).storeToken),
	opProjectHook:   perform((*operations).storeWebhook),

	opSourceAdd:    perform((*operations).addSource),
	opSourceSet:    perform((*operations).setSource),
	opSourceList:   perform((*operations).listSources),
	opSourceRemove: perform((*operations).removeSource),
	opSourceRead:   perform((*operations).readSource),
	opSourceUpload: perform((*operations).uploadSource),

	opKeyCreate: perform((*operations).createKey),
	opKeyList:   perform((*operations).listKeys),
	opKeyRevoke: perform((*operations).revokeKey),
	opKeyRotate: perform((*operations).rotateKey),

	opIndex:           perform((*operations).index),
	opEvaluate:        perform((*operations).evaluate),
	opEvaluateAnswers: perform((*operations).evaluateAnswers),
	opEvaluateRated:   perform((*operations).ratedAnswers),

	opAutomationAdd:    perform((*operations).addAutomation),
	opAutomationList:   perform((*operations).listAutomations),
	opAutomationRemove: perform((*operations).removeAutomation),
	opAutomationRun:    perform((*operations).runAutomation),

	opWebhookAdd:        perform((*operations).addWebhook),
	opWebhookList:       perform((*operations).listWebhooks),
	opWebhookRemove:     perform((*operations).removeWebhook),
	opWebhookPause:      perform((*operations).pauseWebhook),
	opWebhookRotate:     perform((*operations).rotateWebhook),
	opWebhookTest:       perform((*operations).testWebhook),
	opWebhookReplay:     perform((*operations).replayWebhook),
	opWebhookDeliveries: perform((*operations).listDeliveries),

	opConsoleLink:  perform((*operations).consoleLink),
	opPersonAdd:    perform((*operations).addPerson),
	opPersonList:   perform((*operations).listPeople),
	opPersonRole:   perform((*operations).setRole),
	opPersonRemove: perform((*operations).removePerson),
	opPersonEnable: perform((*operations).enablePerson),
	opPersonLink:   perform((*operations).linkPerson),
	opAuditList:    perform((*operations).listAudit),

	opPullList:  perform((*operations).listPulls),
	opPullDiff:  perform((*operations).diffPull),
	opPullMerge: perform((*operations).mergePull),
	opPullClose: perform((*operations).closePull),

	opThreadList:   perform((*operations).listThreads),
	opThreadDelete: perform((*operations).deleteThreads),

	opJournalCheck:   perform((*operations).checkJournal),
	opJournalShow:    perform((*operations).showStream),
	opCatalogRebuild: perform((*operations).rebuildCatalog),
	opCatalogCheck:   perform((*operations).checkCatalog),
	opCatalogAccept:  perform((*operations).acceptRow),
	opBackup:         perform((*operations).backup),
	opDoctor:         perform((*operations).examine),
	opProbe:          perform((*operations).probe),
	opStatus:         perform((*operations).status),
	opAddress:        perform((*operations).address),
	opBenchSeed:      perform((*operations).seed),
	opActorRetry:     perform((*operations).retryActors),
}

// run performs one operation by name.
func (o *operations) run(ctx context.Context, name string, params json.RawMessage, progress Progress) (json.RawMessage,
	error) {
	do, ok := namedOperations[name]
	if !ok {
		return nil, fmt.Errorf("there is no operation %q; the server may be of another version than this command", name)
	}
	result, err := do(o, ctx, params, progress)
	if err == nil {
		o.note(ctx, name, params)
	}
	return result, err
}

// perform is an operation that does something: it decodes the parameters and encodes the result.
func perform[P, R any](do func(*operations, context.Context, P, Progress) (R, error)) operation {
	return func(o *operations, ctx context.Context, params json.RawMessage, progress Progress) (json.RawMessage, error) {
		var p P
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, fmt.Errorf("decode the operation's parameters: %w", err)
		}
		result, err := do(o, ctx, p, progress)
		if err != nil {
			return nil, err
		}
		return json.Marshal(result)
	}
}

// errNoServer is what an operation on the serving process's own state says in a command's process.
var errNoServer = errors.New("no server runs on this data directory")

// withJournal hands over the serving process's journal, or one that is opened for it.
func (o *operations) withJournal(ctx context.Context, use func(journal.Store) error) error {
	if o.app != nil {
		return use(o.app.journal)
	}
	j, err := openJournal(ctx, o.stores.dir, &o.stores.config, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return fmt.Errorf("open the journal: %w; `docent journal check` says more", err)
	}
	unpair, err := pair(ctx, o.stores.dir, j, o.stores.catalog)
	if err == nil {
		err = use(j)
		unpair()
	}
	return errors.Join(err, j.Close())
}
