package router

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"docent/actors/job/startjob"
	"docent/api"
	"docent/internal/budget"
	"docent/internal/grant"
	"docent/persistence/quota"
	"docent/router/overload"
)

// Names of the quotas, as people and the RateLimit headers read them.
const (
	projectHour = startjob.ProjectHour
	keyMonth    = "key-month"
	orgHour     = "org-hour"
	ipDay       = "ip-day"
	ipShare     = "ip-share"
)

// jobUses are the quotas of creating a job and of following up on one.
func (s *Server) jobUses(x *exchange) []quota.Use {
	return startjob.ProjectHourUses(x.project, s.Limits.ProjectHour)
}

// askUses are the quotas of an assistant message. unproven is how many the client's network may ask in a day without
// a proof of work, if the project asks for none; negative for as many as it likes.
func (s *Server) askUses(x *exchange) (uses []quota.Use, unproven int) {
	key := KeyUse(x.project, s.Limits, x.key.ID)
	uses = limited([]quota.Use{key, s.orgUse(&x.project), s.clientUse(&x.project, x.client)})
	if key.Limit < 0 || s.ClientShare >= allShares || x.key.Kind != api.AssistantKey || ofServer(x.key) ||
		s.unlimited(x.client) {
		return uses, -1
	}
	now := s.Now()
	left, reset := s.Quotas.Remaining(now, key)
	share := quota.Use{Name: ipShare, Key: "share/" + api.Network(x.client) + "/" + string(x.key.ID),
		Window: quota.SlidingDay, Limit: budget.Share(s.ClientShare, left)}
	unproven = share.Limit / 4
	// A tenth of the month's questions may be asked early before the key counts as pressed.
	passed := 1 - float64(reset)/float64(key.Window.Length(now))
	if float64(key.Limit-left) > float64(key.Limit)*(passed+0.1) {
		unproven = min(unproven, unprovenPressed)
	}
	return append(uses, share), unproven
}

const (
	// allShares is the share of a client with which nothing is bounded for each client.
	allShares = 100
	// unprovenPressed are the questions that one network may ask in a day without a proof of work while the key's month
	// is used up faster than its days pass.
	unprovenPressed = 4
)

// orgUse is the quota of all that is asked in an organization.
func (s *Server) orgUse(p *api.Project) quota.Use {
	return orgUse(*p, s.Limits.OrgHour)
}

// clientUse is the quota of what is asked from one network.
func (s *Server) clientUse(p *api.Project, client netip.Addr) quota.Use {
	return quota.Use{Name: ipDay, Key: "ip/" + api.Network(client), Window: quota.SlidingDay,
		Limit: cmp.Or(p.Limits.IPDay, s.Limits.IPDay)}
}

// KeyUse is the quota of what is asked with a key.
func KeyUse(p api.Project, otherwise api.Limits, key api.KeyID) quota.Use {
	return quota.Use{Name: keyMonth, Key: "key/" + string(key), Window: quota.CalendarMonth,
		Limit: cmp.Or(p.Limits.KeyMonth, otherwise.KeyMonth, DefaultLimits().KeyMonth)}
}

// ProjectUses are the quotas of a project's jobs and of what is asked in its organization.
func ProjectUses(p api.Project, otherwise api.Limits) (jobs, organization quota.Use) {
	d := DefaultLimits()
	jobs = quota.Use{Name: projectHour, Limit: -1}
	if uses := startjob.ProjectHourUses(p, cmp.Or(otherwise.ProjectHour, d.ProjectHour)); len(uses) > 0 {
		jobs = uses[0]
	}
	return jobs, orgUse(p, cmp.Or(otherwise.OrgHour, d.OrgHour))
}

func orgUse(p api.Project, otherwise int) quota.Use {
	return quota.Use{Name: orgHour, Key: "org/" + string(p.Org), Window: quota.SlidingHour,
		Limit: cmp.Or(p.Limits.OrgHour, otherwise)}
}

// limited leaves out the quotas that are switched off.
func limited(uses []quota.Use) []quota.Use {
	return slices.DeleteFunc(uses, func(u quota.Use) bool { return u.Limit < 0 })
}

// enter takes a place in the queue, for which it may have to wait, and one use of each quota. Headers say what is left of
// the quotas; they may be nil.
func (s *Server) enter(ctx context.Context, g *grant.Grant, h http.Header, uses []quota.Use) error {
	ticket, err := s.enqueue(ctx)
	if err != nil {
		return err
	}
	g.Hold(ticket)
	now := s.Now()
	err = s.Quotas.Reserve(now, uses)
	s.quotaHeaders(h, now, uses)
	if err != nil {
		s.metrics.refuse("quota")
		return err
	}
	g.Add(func() {
		s.Quotas.Release(now, uses)
		s.quotaHeaders(h, s.Now(), uses)
	})
	return nil
}

// quotaHeaders writes the headers of draft-ietf-httpapi-ratelimit-headers-10: the policies (q uses in w seconds), and
// for each what remains (r) and when there will be more (t seconds).
func (s *Server) quotaHeaders(h http.Header, now time.Time, uses []quota.Use) {
	if h == nil || len(uses) == 0 {
		return
	}
	policy, state := make([]byte, 0, 192), make([]byte, 0, 192)
	for i, u := range uses {
		if i > 0 {
			policy, state = append(policy, ", "...), append(state, ", "...)
		}
		left, reset := s.Quotas.Remaining(now, u)
		policy = append(append(append(policy, '"'), u.Name...), `";q=`...)
		policy = append(strconv.AppendInt(policy, int64(u.Limit), 10), ";w="...)
		policy = strconv.AppendInt(policy, int64(u.Window.Length(now).Seconds()), 10)
		state = append(append(append(state, '"'), u.Name...), `";r=`...)
		state = strconv.AppendInt(state, int64(max(left, 0)), 10)
		if reset > 0 {
			state = strconv.AppendInt(append(state, ";t="...), int64((reset+time.Second-1)/time.Second), 10)
		}
	}
	h.Set("RateLimit-Policy", string(policy))
	h.Set("RateLimit", string(state))
}

// answerWithin is the time within which an admitted request is expected to see its answer begin: one that would have
// to wait longer is refused. It is two seconds, of which a third is kept for what the expectation may be wrong by and
// for the time before the queue.
const answerWithin = 2 * time.Second * 2 / 3

// enqueue lets a request in that makes work; it may have to wait in the queue.
func (s *Server) enqueue(ctx context.Context) (*overload.Ticket, error) {
	p, err := s.queue.Enter(ctx)
	return p, s.queued(err)
}

// queued counts a refusal of the queue.
func (s *Server) queued(err error) error {
	if errors.Is(err, api.ErrOverloaded) {
		s.metrics.refuse("queue")
	}
	return err
}
