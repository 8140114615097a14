// Package operator is what those who run a server, and those who own a project, can do with it. Each operation is a method of
// Service. Commands reach it over the socket of the serving process, or run it themselves where no server has the data directory;
// the console calls it directly.
package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"docent/actors"
	"docent/actors/automation"
	"docent/actors/webhooks"
	"docent/api"
	"docent/cmd/docent/doctor"
	"docent/cmd/docent/stores"
	"docent/internal/health"
	"docent/model/registry"
	"docent/persistence/backup"
	"docent/persistence/catalog"
	"docent/persistence/journal"
	"docent/router"
	"docent/router/reqbody"
	"docent/search/sources"
)

// A Service does what operators ask of a data directory, with the stores of the process that it runs in.
type Service struct {
	stores  *stores.Stores
	server  *Running   // where they run in the serving process
	journal *inspected // where the journal's file is looked at and nothing else is open
	erasing erasures
	using   sync.Mutex // of language models
}

// New makes the operations on stores, and on a running server where there is one.
func New(s *stores.Stores, server *Running) *Service {
	o := &Service{stores: s, server: server}
	o.erasing.ops = o
	return o
}

// Running is what the serving process has beside the stores, for operations on what runs.
type Running struct {
	Log         *slog.Logger
	Work        context.Context // ends when what was begun for the console must stop
	Address     string          // under which this machine reaches the server
	Journal     journal.Store
	System      *actors.System
	Listings    []*catalog.Projector
	Automations *automation.Runner
	Hooks       *webhooks.Hooks
	Updates     *sources.Updates
	Tasks       *sources.Tasks
	Models      *registry.Registry
	Backups     *backup.Keeper
	Tail        *health.Tail // of the log
	Probes      *doctor.Probes

	Status   func() (health.Status, error)
	Cluster  func() *health.Cluster // nil if the server is alone
	Forget   func(context.Context, api.ThreadID, api.ProjectID) error
	Evaluate func(context.Context, api.Project, reqbody.Evaluation) ([]router.EvaluatedAnswer, error)
}

// An operation has its parameters and its result as JSON.
type operation func(o *Service, ctx context.Context, params json.RawMessage, progress Progress) (json.RawMessage,
	error)

// namedOperations is every operation by its name, which the commands and the server that they reach agree on.
var namedOperations = map[string]operation{
	OpProjectAdd:    perform((*Service).AddProject),
	OpProjectSet:    perform((*Service).setProject),
	OpProjectList:   answer((*Service).listProjects),
	OpProjectCheck:  perform((*Service).checkProject),
	OpProjectRemove: act((*Service).removeProject),
	OpProjectToken:  perform((*Service).storeToken),
	OpProjectHook:   perform((*Service).storeWebhook),
	OpProjectChat:   answer((*Service).setChat),

	OpSourceAdd:    perform((*Service).AddSource),
	OpSourceSet:    perform((*Service).setSource),
	OpSourceList:   answer((*Service).listSources),
	OpSourceRemove: act((*Service).removeSource),
	OpSourceRead:   perform((*Service).readSource),
	OpSourceUpload: perform((*Service).uploadSource),

	OpKeyLocal:  answer((*Service).localKey),
	OpKeyCreate: answer((*Service).CreateKey),
	OpKeyList:   answer((*Service).ListKeys),
	OpKeyRevoke: act((*Service).revokeKey),
	OpKeyRotate: answer((*Service).rotateKey),

	OpReaderSecretCreate: answer((*Service).createReaderSecret),
	OpReaderSecretList:   answer((*Service).listReaderSecrets),
	OpReaderSecretRetire: act((*Service).retireReaderSecret),

	OpIndex:           perform((*Service).index),
	OpEvaluate:        answer((*Service).evaluate),
	OpEvaluateAnswers: perform((*Service).evaluateAnswers),
	OpEvaluateRated:   perform((*Service).ratedAnswers),

	OpAutomationAdd:    answer((*Service).AddAutomation),
	OpAutomationList:   answer((*Service).listAutomations),
	OpAutomationRemove: act((*Service).removeAutomation),
	OpAutomationRun:    answer((*Service).runAutomation),

	OpWebhookAdd:        answer((*Service).addWebhook),
	OpWebhookList:       answer((*Service).listWebhooks),
	OpWebhookRemove:     act((*Service).removeWebhook),
	OpWebhookPause:      answer((*Service).pauseWebhook),
	OpWebhookRotate:     answer((*Service).rotateWebhook),
	OpWebhookTest:       answer((*Service).testWebhook),
	OpWebhookReplay:     answer((*Service).replayWebhook),
	OpWebhookDeliveries: answer((*Service).listDeliveries),

	OpConsoleLink:  answer((*Service).consoleLink),
	OpPersonAdd:    answer((*Service).addPerson),
	OpPersonList:   answer((*Service).listPeople),
	OpPersonRole:   act((*Service).setRole),
	OpPersonMake:   act((*Service).makeOperator),
	OpPersonRemove: act((*Service).removePerson),
	OpPersonEnable: act((*Service).enablePerson),
	OpPersonLink:   answer((*Service).linkPerson),
	OpAuditList:    answer((*Service).listAudit),

	OpPullList:  answer((*Service).listPulls),
	OpPullDiff:  answer((*Service).diffPull),
	OpPullMerge: answer((*Service).mergePull),
	OpPullClose: answer((*Service).closePull),

	OpThreadList:   perform((*Service).listThreads),
	OpThreadDelete: perform((*Service).deleteThreads),

	OpJournalCheck:   answer((*Service).checkJournal),
	OpJournalShow:    answer((*Service).showStream),
	OpCatalogRebuild: answer((*Service).rebuildCatalog),
	OpCatalogCheck:   answer((*Service).checkCatalog),
	OpCatalogAccept:  act((*Service).acceptRow),
	OpBackup:         perform((*Service).Backup),
	doctor.OpDoctor:  answer((*Service).examine),
	doctor.OpProbe:   answer((*Service).probe),
	OpStatus:         answer((*Service).status),
	OpAddress:        answer((*Service).address),
	OpSeed:           perform((*Service).seed),
	OpActorRetry:     answer((*Service).retryActors),
}

// Run performs one operation by name.
func (o *Service) Run(ctx context.Context, name string, params json.RawMessage, progress Progress) (json.RawMessage,
	error) {
	do, ok := namedOperations[name]
	if !ok {
		return nil, fmt.Errorf("there is no operation %q; the server may be of another version than this command", name)
	}
	result, err := do(o, ctx, params, progress)
	if err == nil {
		o.note(ctx, name, params, result)
	}
	return result, err
}

// answer is perform for what is done at once.
func answer[P, R any](do func(*Service, context.Context, P) (R, error)) operation {
	return perform(func(o *Service, ctx context.Context, p P, _ Progress) (R, error) { return do(o, ctx, p) })
}

// act is perform for what is done at once and has nothing to say.
func act[P any](do func(*Service, context.Context, P) error) operation {
	return perform(func(o *Service, ctx context.Context, p P, _ Progress) (struct{}, error) {
		return struct{}{}, do(o, ctx, p)
	})
}

// perform is an operation that does something: it decodes the parameters and encodes the result.
func perform[P, R any](do func(*Service, context.Context, P, Progress) (R, error)) operation {
	return func(o *Service, ctx context.Context, params json.RawMessage, progress Progress) (json.RawMessage, error) {
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
var errNoServer = errors.New("no server runs on this data directory: start one with `docent serve`")

// withJournal hands over the serving process's journal, or one that is opened for it.
func (o *Service) withJournal(ctx context.Context, use func(journal.Store) error) error {
	if o.server != nil {
		return use(o.server.Journal)
	}
	j, err := stores.OpenJournal(ctx, o.stores.Dir, &o.stores.Config, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return fmt.Errorf("open the journal: %w; `docent journal check` says more", err)
	}
	unpair, err := stores.Pair(ctx, o.stores.Dir, j, o.stores.Catalog)
	if err == nil {
		err = use(j)
		unpair()
	}
	return errors.Join(err, j.Close())
}

// A Progress hears how far a piece of work is.
type Progress = sources.Progress
