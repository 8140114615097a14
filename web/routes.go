package web

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/uptrace/bunrouter"

	"docent/api"
)

// A need is what a visitor must be to see a page or do what it offers.
type need uint8

const (
	anybody  need = iota // no session
	signedIn             // any session
	viewer               // a role in the organization of the address
	editor
	owner
	operator // who runs the server: an owner of the default organization, or who came by the printed link
)

func (n need) String() string {
	return [...]string{"anybody", "signed in", "viewer", "editor", "owner", "operator"}[n]
}

// role is the least role that a need asks for.
func (n need) role() api.Role {
	return map[need]api.Role{viewer: api.RoleViewer, editor: api.RoleEditor, owner: api.RoleOwner}[n]
}

// A route is one page, or one thing that a form does.
type route struct {
	method, pattern string
	need            need
	serve           func(*visit) error
}

// project is the part of an address that names a project: its organization and its domain.
const project = "/console/:org/:domain"

// uploadPath takes a file, behind the fields of its form.
const uploadPath = project + "/sources/upload"

// routes is every page on one screen.
func (s *Server) routes() []route {
	return []route{
		{"GET", "/", anybody, s.index},
		{"GET", "/api", anybody, s.showAPI},
		{"GET", "/assets/:file", anybody, s.asset},
		{"GET", "/favicon.svg", anybody, s.icon},
		{"GET", "/favicon.ico", anybody, s.icon}, // what browsers ask for on pages that name none

		// Sign-in
		{"GET", "/login", anybody, s.showLogin},
		{"POST", "/login", anybody, s.login},
		{"POST", "/logout", anybody, s.logout},
		{"GET", "/login/oidc", anybody, s.loginWithProvider},
		{"GET", callbackPath, anybody, s.fromProvider},
		{"GET", "/enter/:token", anybody, s.showEnter}, // a one-time link
		{"POST", "/enter/:token", anybody, s.enter},
		{"GET", "/invite/:token", anybody, s.showInvitation},
		{"POST", "/invite/:token", anybody, s.acceptInvitation},

		// Whoever is signed in
		{"GET", accountPath, signedIn, s.showAccount},
		{"POST", accountPath + "/name", signedIn, s.renameMe},
		{"POST", accountPath + "/password", signedIn, s.changePassword},
		{"POST", accountPath + "/connect", signedIn, s.connectMe},
		{"POST", accountPath + "/disconnect", signedIn, s.disconnectMe},
		{"POST", accountPath + "/end", signedIn, s.endSession},
		{"POST", accountPath + "/end-others", signedIn, s.endOtherSessions},
		{"POST", accountPath + "/make", signedIn, s.makeOwner},

		// An organization's people
		{"GET", "/console/:org/people", viewer, s.showPeople},
		{"POST", "/console/:org/people/invite", owner, s.invite},
		{"POST", "/console/:org/people/revoke", owner, s.revokeInvitation},
		{"POST", "/console/:org/people/role", owner, s.changeRole},
		{"POST", "/console/:org/people/remove", owner, s.removePerson},
		{"POST", "/console/:org/people/disable", owner, s.disablePerson},
		{"POST", "/console/:org/people/link", owner, s.linkPerson},
		{"POST", "/console/:org/people/end", owner, s.endPersonsSessions},
		{"GET", "/console/:org/audit", owner, s.showAudit},
		{"GET", "/console/:org/audit.csv", owner, s.auditCSV},

		// Pull requests of the built-in host: whoever has the link may read.
		{"GET", "/pulls/:id", anybody, s.showPull},          // also {id}.diff and {id}.patch
		{"POST", "/pulls/:id/merge", signedIn, s.mergePull}, // and an editor's role in the project's organization
		{"POST", "/pulls/:id/close", signedIn, s.closePull},
		{"POST", "/pulls/:id/comment", signedIn, s.comment},
		{"POST", "/pulls/:id/uncomment", signedIn, s.removeComment},
		{"POST", "/pulls/:id/send", signedIn, s.sendComments},

		// The agent
		{"GET", project + "/jobs", viewer, s.showJobs},
		{"GET", project + "/jobs/live", viewer, s.liveJobs},
		{"GET", project + "/jobs/new", editor, s.showNewJob},
		{"POST", project + "/jobs/create", editor, s.createJob},
		{"GET", project + "/jobs/:id", viewer, s.showJob},
		{"GET", project + "/jobs/:id/live", viewer, s.liveJob},
		{"GET", project + "/jobs/:id/steps/:seq", viewer, s.showStep},
		{"POST", project + "/jobs/:id/message", editor, s.followUp},
		{"POST", project + "/jobs/:id/cancel", editor, s.cancelJob},
		{"POST", project + "/jobs/:id/archive", editor, s.archiveJob},
		{"POST", project + "/jobs/:id/carry-out", editor, s.carryOut},
		{"GET", project + "/pulls", viewer, s.showPulls},
		{"GET", project + "/pulls/live", viewer, s.livePulls},
		{"GET", project + "/automations", viewer, s.showAutomations},
		{"GET", project + "/automations/new", owner, s.showNewAutomation},
		{"POST", project + "/automations/create", owner, s.createAutomation},
		{"GET", project + "/automations/:id", viewer, s.showAutomation},
		{"POST", project + "/automations/:id/run", editor, s.runAutomation},
		{"POST", project + "/automations/:id/pause", owner, s.pauseAutomation},
		{"POST", project + "/automations/:id/remove", owner, s.removeAutomation},

		// What other systems are told
		{"GET", project + "/webhooks", owner, s.showHooks},
		{"POST", project + "/webhooks/create", owner, s.addHook},
		{"GET", project + "/webhooks/:id", owner, s.showHook},
		{"POST", project + "/webhooks/:id/test", owner, s.testHook},
		{"POST", project + "/webhooks/:id/pause", owner, s.pauseHook},
		{"POST", project + "/webhooks/:id/replay", owner, s.replayHook},
		{"POST", project + "/webhooks/:id/rotate", owner, s.rotateHook},
		{"POST", project + "/webhooks/:id/remove", owner, s.removeHook},

		// The console
		{"GET", "/console", signedIn, s.chooseProject},
		{"GET", project, viewer, s.overview},
		{"GET", project + "/live", viewer, s.liveOverview},

		{"GET", project + "/keys", viewer, s.showKeys},
		{"POST", project + "/keys/create", owner, s.createKey},
		{"POST", project + "/keys/revoke", owner, s.revokeKey},
		// What readers ask, and what the documentation lacks
		{"GET", project + "/analytics", viewer, s.showAnalytics},
		{"GET", project + "/analytics.csv", viewer, s.analyticsCSV},
		{"GET", project + "/gaps", viewer, s.showGaps},
		{"GET", project + "/gaps/:id", viewer, s.showGap},
		{"POST", project + "/gaps/:id/open", editor, s.openGap},
		{"POST", project + "/gaps/:id/dismiss", editor, s.dismissGap},
		{"POST", project + "/gaps/:id/restore", editor, s.restoreGap},
		{"GET", project + "/report", viewer, s.showReport},
		{"GET", project + "/report.csv", viewer, s.reportCSV},
		{"POST", project + "/report/webhook", owner, s.setReportHook},
		{"POST", project + "/report/secret", owner, s.renewReportSecret},
		{"POST", project + "/report/test", owner, s.testReport},
		{"POST", project + "/report/remove", owner, s.removeReportHook},

		{"GET", project + "/conversations", viewer, s.showConversations},
		{"GET", project + "/conversations/live", viewer, s.liveConversations},
		{"GET", project + "/conversations.csv", viewer, s.conversationsCSV},
		{"GET", project + "/conversations.ndjson", viewer, s.conversationsNDJSON},
		{"GET", project + "/conversations/forget", owner, s.showForget},
		{"GET", project + "/conversations/forget/live", owner, s.liveForget},
		{"POST", project + "/conversations/forget/begin", owner, s.forget},
		{"GET", project + "/conversations/:thread", viewer, s.showThread},
		{"GET", project + "/conversations/:thread/live", viewer, s.liveThread},
		{"POST", project + "/conversations/:thread/delete", owner, s.deleteThread},

		// The server itself
		{"GET", systemPath, operator, s.showSystem},
		{"GET", systemPath + "/live", operator, s.liveSystem},
		{"GET", systemPath + "/log", operator, s.liveLog},
		{"POST", systemPath + "/retry", operator, s.retryActor},
		{"POST", systemPath + "/backup", operator, s.beginBackup},
		// A project, from its source to its keys
		{"GET", "/console/setup", operator, s.showSetup},
		{"POST", "/console/setup/source", operator, s.setupSource},
		{"GET", "/console/setup/:id", operator, s.showDraft},
		{"GET", "/console/setup/:id/live", operator, s.setupLive},
		{"POST", "/console/setup/:id/look", operator, s.setupLook},
		{"POST", "/console/setup/:id/add", operator, s.setupAdd},
		{"POST", "/console/setup/:id/cancel", operator, s.setupCancel},
		{"POST", "/console/setup/:id/discard", operator, s.setupDiscard},
		{"GET", "/console/setup/:id/indexing", operator, s.showIndexing},
		{"GET", "/console/setup/:id/question", operator, s.showQuestion},
		{"POST", "/console/setup/:id/ask", operator, s.setupAsk},
		{"GET", "/console/setup/:id/answer", operator, s.setupAnswer},
		{"GET", "/console/setup/:id/keys", operator, s.showKeysStep},
		{"POST", "/console/setup/:id/create", operator, s.setupKeys},

		// Where the documentation comes from
		{"GET", project + "/sources", viewer, s.showSources},
		{"POST", project + "/sources/reindex", editor, s.reindex},
		{"POST", project + "/sources/check", editor, s.recheck},
		{"POST", project + "/sources/token", owner, s.setToken},
		{"POST", project + "/sources/further", operator, s.addFurther},
		{"POST", project + "/sources/preview", owner, s.previewSite},
		{"POST", project + "/sources/site", owner, s.addSite},
		{"POST", uploadPath, owner, s.uploadZip},
		{"POST", project + "/sources/further/:label/set", owner, s.setFurther},
		{"POST", project + "/sources/further/:label/read", editor, s.readFurther},
		{"POST", project + "/sources/further/:label/remove", owner, s.removeFurther},
		{"GET", project + "/sources/task/:task", viewer, s.sourceTask},
		{"GET", project + "/sources/task/:task/live", viewer, s.sourceTaskLive},
		{"GET", project + "/sources/updates/:update", viewer, s.showUpdate},
		{"GET", project + "/sources/updates/:update/live", viewer, s.liveUpdate},
		{"GET", project + "/sources/webhook", viewer, s.showWebhook},
		{"POST", project + "/sources/webhook/new", owner, s.newWebhook},
		{"POST", project + "/sources/webhook/remove", owner, s.removeWebhook},
		{"POST", project + "/sources/webhook/test", owner, s.tryWebhook},

		{"GET", project + "/settings", viewer, s.showSettings},
		{"POST", project + "/settings/change", owner, s.changeSettings},
		{"POST", project + "/settings/remove", owner, s.removeProject},
		{"GET", project + "/widget", viewer, s.showWidget},
		{"POST", project + "/widget/preview", viewer, s.previewWidget},
		{"POST", project + "/widget/change", owner, s.changeWidget},
		// Playground: whoever may see the project may also ask, as any reader can.
		{"GET", project + "/playground", viewer, s.playground},
		{"POST", project + "/playground/try", viewer, s.tryIt},
		{"GET", project + "/playground/answers/:thread", viewer, s.tryAnswer},
		{"POST", project + "/playground/answers/:thread/stop", viewer, s.stopTry},
	}
}

// guard is a page behind what every visit passes: who it is, which project is meant, and for forms that they come from
// a page of ours.
func (s *Server) guard(r route) bunrouter.HandlerFunc {
	return func(w http.ResponseWriter, req bunrouter.Request) error {
		a := w.(*answer)
		v := &visit{ResponseWriter: a.ResponseWriter, Req: req.Request, params: req, client: a.client, secure: a.secure,
			now: s.Now(), route: r, server: s}
		if err := s.recognise(v); err != nil {
			return err
		}
		if r.method == http.MethodPost {
			read := v.readForm
			if r.pattern == uploadPath {
				read = v.readUpload
			}
			if err := read(); err != nil {
				return err
			}
		}
		if r.need != anybody && !v.signedIn {
			return v.seeOther("/login?next=" + url.QueryEscape(v.page()))
		}
		if r.method == http.MethodPost && !s.ours(v) {
			return errForm
		}
		if err := s.place(v, r); err != nil {
			return err
		}
		if s.Setting != nil && inOneMemory(r.pattern) {
			if err := s.Setting(v.Context()); err != nil {
				return err
			}
		}
		return r.serve(v)
	}
}

// inOneMemory is whether a page shows or changes what one process remembers: drafts of projects, and tasks on sources.
func inOneMemory(pattern string) bool {
	return strings.HasPrefix(pattern, "/console/setup") || strings.HasPrefix(pattern, project+"/sources")
}

// place finds the organization and the project of an address, and refuses who may not be there.
func (s *Server) place(v *visit, r route) error {
	if r.need == operator && !v.who.operator {
		return api.Missing("page")
	}
	v.org = api.OrgID(v.param("org"))
	if v.org == "" {
		return nil
	}
	role := v.who.role(v.org)
	if !role.Valid() {
		return api.Missing("page") // also where there is no such organization
	}
	if domain := v.param("domain"); domain != "" {
		p, err := s.Catalog.ProjectByDomain(v.Context(), domain)
		if err != nil {
			return api.Named(err, "project")
		}
		if p.Org != v.org {
			return api.Missing("project")
		}
		v.project = p
		v.about("", "")
	}
	if need := r.need.role(); need != "" && !role.AtLeast(need) {
		return &api.StateError{Kind: api.ErrForbidden, Reason: "this needs the role " + string(need) +
			", and yours is " + string(role) + "; an owner of the organization can change it"}
	}
	return nil
}
