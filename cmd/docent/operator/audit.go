package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"

	"docent/api"
	"docent/persistence/catalog"
)

// audited are the operations that change something, which the audit log names.
var audited = []string{
	OpConsoleLink, OpPersonAdd, OpPersonRole, OpPersonMake, OpPersonRemove, OpPersonEnable, OpPersonLink,
	OpProjectAdd, OpProjectSet, OpProjectRemove, OpSourceAdd, OpSourceSet, OpSourceRemove, OpKeyCreate, OpKeyRevoke, OpKeyRotate,
	OpReaderSecretCreate, OpReaderSecretRetire,
	OpAutomationAdd, OpAutomationRemove, OpAutomationRun, OpPullMerge, OpPullClose, OpThreadDelete, OpCatalogAccept,
}

// note writes into the audit log what was done by command. Of the parameters and the result it takes what names something:
// the others may be secrets.
func (o *Service) note(ctx context.Context, name string, params, result json.RawMessage) {
	if !slices.Contains(audited, name) {
		return
	}
	var p, made struct {
		ID, Project, Email, Name, Kind, Role string
		Organization                         api.OrgID
		Operator                             bool
	}
	_ = json.Unmarshal(params, &p) // what is not there stays empty
	_ = json.Unmarshal(result, &made)
	entry := api.AuditEntry{Org: p.Organization, Project: api.ProjectID(p.Project),
		Action: name, Object: cmp.Or(p.Email, p.ID, p.Name, p.Project), Detail: cmp.Or(p.Role, p.Kind)}
	switch name {
	case OpKeyCreate, OpKeyRevoke, OpKeyRotate:
		o.noteKey(ctx, &entry, api.KeyID(cmp.Or(made.ID, p.ID)))
		if name == OpKeyRotate {
			entry.Detail += ", in place of " + p.ID
		}
	case OpConsoleLink:
		entry.Object = made.ID
	case OpPersonAdd, OpPersonMake:
		if p.Operator {
			entry.Detail = strings.TrimPrefix(entry.Detail+" and operator", " and ")
		} else if name == OpPersonMake {
			entry.Detail = "no operator any more"
		}
	}
	if strings.HasPrefix(name, "project.") || strings.HasPrefix(name, "source.") {
		entry.Project = api.ProjectID(p.ID)
	}
	o.audit(ctx, entry)
}

// noteKey has an entry say which key it is about, in the log of the key's own organization.
func (o *Service) noteKey(ctx context.Context, entry *api.AuditEntry, id api.KeyID) {
	entry.Object = string(id)
	keys, _ := o.stores.Catalog.Keys(ctx, catalog.KeyQuery{ID: id}) // without them the entry says less
	for _, k := range keys {
		entry.Org, entry.Project, entry.Detail = k.Org, k.Project, strings.TrimSpace(string(k.Kind)+" "+k.Name)
	}
}

// audit writes into the audit log what was done by command.
func (o *Service) audit(ctx context.Context, entry api.AuditEntry) {
	entry.WhoID, entry.Who = "command line", "command line"
	if project, err := o.stores.Catalog.Project(ctx, entry.Project); err == nil {
		entry.Org = project.Org
	}
	if err := o.stores.Catalog.Audit(context.WithoutCancel(ctx), entry); err != nil {
		log := slog.Default()
		if o.server != nil {
			log = o.server.Log
		}
		log.Error("could not write an audit log entry", "error", err, "action", entry.Action)
	}
}
