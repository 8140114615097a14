// Package traffic is for tests and measurements: conversations and jobs as a documentation site has them in half a year,
// as many as are asked for. Who gives the same seed gets the same texts, times and ratings.
package traffic

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"docent/api"
	"docent/internal/brief"
)

// Site is where the pages that answers cite are.
const Site = "https://docs.example.com"

// span is how far back the oldest conversation lies.
const span = 180 * 24 * time.Hour

var (
	things = strings.Fields(`webhook token project pipeline runner cache secret variable repository branch release image
		volume network proxy certificate domain account team role permission invoice quota backup snapshot cluster node
		worker queue schedule trigger template plugin extension theme dashboard report metric alert log trace dataset
		schema migration index query transaction replica shard session cookie form upload download archive mirror registry
		package dependency licence container sandbox environment gateway router firewall policy audit export import sync`)
	verbs = strings.Fields(`create delete rename configure enable disable rotate restore import export share move copy
		debug upgrade install monitor limit restrict schedule test validate deploy publish archive search filter sort
		connect disconnect cancel retry`)
	places   = strings.Fields(`get-started guides reference operate security billing integrations troubleshooting`)
	openings = []string{
		"How do I %s a %s", "How can I %s the %s", "Is it possible to %s a %s",
		"What happens when I %s a %s",
		"Why can't I %s my %s", "Where do I %s the %s", "Can a viewer %s a %s", "Do I have to %s each %s"}
	circumstances = []string{"", "", "", " from the command line", " with the API", " behind a proxy", " on Kubernetes",
		" without downtime", " for the whole team", " in version 2", " when it fails with error 403", " on a Mac", " in CI"}
	sentences = []string{
		"To %[1]s a %[2]s, open its page and choose **%[1]s** from the menu.",
		"The %[2]s has to be idle; otherwise the request is refused with the status 409.",
		"On the command line, run `acme %[2]s %[1]s NAME`, and add `--wait` where a script has to know the result.",
		"Only owners and editors may %[1]s a %[2]s; a viewer sees the button greyed out.",
		"The change is written to the audit log, together with who made it and from which address.",
		"A %[2]s that belongs to another organization is not found, whatever its state is.",
		"It takes effect within a minute, since every node asks for its configuration that often.",
		"Where several are meant, give their names one after the other or use `--all`.",
		"Before version 2 this was done with a file named `%[2]s.yaml`, which is still read.",
		"If the limit of the plan is reached, the answer names it and when it is free again.",
	}
	comments = []string{"Did not answer my question.", "This is about the old version", "Perfect, thanks!",
		"the command fails",
		"wrong page", "Exactly what I was looking for", "too long"}
	follows = []string{"And how do I undo that?", "Does that also work for a %s?", "What is the limit?",
		"Can you show an example?",
		"Who may do this?"}
)

// A Site's pages, by number.
func page(n int) api.PageRef {
	n %= len(things) * len(places)
	thing, place := things[n%len(things)], places[n/len(things)]
	return api.PageRef{URL: Site + "/" + place + "/" + thing, Title: brief.Capital(thing) + "s"}
}

// skewed is a number below n, the low ones more often.
func skewed(r *rand.Rand, n int) int {
	return int(float64(n) * r.Float64() * r.Float64() * r.Float64())
}

// when is a time before now: more on working days than else, and more by day.
func when(r *rand.Rand, now time.Time) time.Time {
	for {
		at := now.Add(-time.Duration(r.Int64N(int64(span))))
		busy := 1.0
		if d := at.Weekday(); d == time.Saturday || d == time.Sunday {
			busy = 0.3
		}
		if h := at.Hour(); h < 7 || h > 20 {
			busy *= 0.3
		}
		if r.Float64() < busy {
			return at.Truncate(time.Millisecond).UTC()
		}
	}
}

// times are n times before now, the oldest first.
func times(r *rand.Rand, n int, now time.Time) []time.Time {
	list := make([]time.Time, n)
	for i := range list {
		list[i] = when(r, now)
	}
	slices.SortFunc(list, time.Time.Compare)
	return list
}

// Conversations makes n conversations of a project that ended by now, the oldest first. Each has from one to some
// questions.
func Conversations(seed uint64, n int, project api.ProjectID, now time.Time) iter.Seq[api.ThreadRow] {
	return func(yield func(api.ThreadRow) bool) {
		r := rand.New(rand.NewPCG(seed, 1))
		for _, at := range times(r, n, now.Add(-time.Hour)) {
			if !yield(conversation(r, project, at)) {
				return
			}
		}
	}
}

func conversation(r *rand.Rand, project api.ProjectID, at time.Time) api.ThreadRow {
	t := api.ThreadRow{ID: api.ThreadID(api.NewID(api.ThreadPrefix, at)), Project: project, Caller: "anonymous"}
	if r.IntN(3) == 0 {
		t.Caller = fmt.Sprintf("user-%05d", skewed(r, 20_000))
	}
	channel := api.ChannelWeb
	if r.IntN(8) == 0 {
		channel = api.ChannelAPI
	}
	thing := skewed(r, len(things))
	from := ""
	if channel == api.ChannelWeb {
		from = strings.TrimPrefix(page(skewed(r, len(things)*len(places))).URL, Site)
	}
	for n := 0; n == 0 || n < 6 && r.IntN(5) < 2; n++ {
		q := question(r, n, thing, at)
		q.Thread, q.Project, q.Caller, q.Channel, q.Page = t.ID, project, t.Caller, channel, from
		t.Questions = append(t.Questions, q)
		at = q.Ended.Add(time.Duration(5+r.IntN(90)) * time.Second)
	}
	return t
}

func question(r *rand.Rand, n, thing int, at time.Time) api.QuestionRow {
	verb := verbs[skewed(r, len(verbs))]
	q := api.QuestionRow{ID: api.TurnID(api.NewID(api.TurnPrefix, at)), Asked: at, Model: "builtin"}
	q.Question = fmt.Sprintf(openings[r.IntN(len(openings))], verb, things[thing]) +
		circumstances[r.IntN(len(circumstances))] + "?"
	if n > 0 {
		q.Question = follows[r.IntN(len(follows))]
		if strings.Contains(q.Question, "%s") {
			q.Question = fmt.Sprintf(q.Question, things[skewed(r, len(things))])
		}
	}
	q.FirstText = 40 + int64(300*r.ExpFloat64())
	q.Ended = at.Add(time.Duration(q.FirstText+int64(r.IntN(4000))) * time.Millisecond)
	cite := func(pages int) {
		for i := range pages {
			q.Sources = append(q.Sources, page(thing+len(things)*((n+i)%len(places))))
		}
	}
	switch k := r.IntN(100); {
	case k < 3:
		q.Error, q.FirstText = "The answer could not be completed. Please try again.", 0
	case k < 10:
		q.Answer = "The documentation does not answer this question."
	case k < 18:
		q.Answer = "I couldn't find a clear answer. This may help:\n\n" +
			text(r, verb, things[thing], 2)
		cite(1 + r.IntN(2))
	default:
		q.Answered = true
		q.Answer = text(r, verb, things[thing], 4+r.IntN(6))
		cite(1 + r.IntN(3))
	}
	switch k := r.IntN(100); {
	case k < 4 && q.Answered:
		q.Rating = api.RatedUp
	case k >= 97 || k >= 90 && !q.Answered:
		q.Rating = api.RatedDown
	}
	if q.Rating != "" {
		q.Rated = q.Ended.Add(time.Duration(1+r.IntN(60)) * time.Second)
		if r.IntN(3) == 0 {
			q.Comment = comments[r.IntN(len(comments))]
		}
	}
	return q
}

func text(r *rand.Rand, verb, thing string, n int) string {
	var b strings.Builder
	for i := range n {
		switch {
		case i > 0 && i%3 == 0:
			b.WriteString("\n\n")
		case i > 0:
			b.WriteByte(' ')
		}
		s := sentences[r.IntN(len(sentences))]
		if strings.Contains(s, "%") {
			s = fmt.Sprintf(s, verb, thing)
			s, _, _ = strings.Cut(s, "%!(EXTRA")
		}
		b.WriteString(s)
	}
	return b.String()
}

// A Job is one of the agent's, which has ended.
type Job struct {
	Row    api.JobRow
	Prompt string
}

// Jobs makes n jobs of a project that ended by now, the oldest first.
func Jobs(seed uint64, n int, project api.ProjectID, now time.Time) iter.Seq[Job] {
	return func(yield func(Job) bool) {
		r := rand.New(rand.NewPCG(seed, 2))
		for _, at := range times(r, n, now.Add(-time.Hour)) {
			if !yield(job(r, project, at)) {
				return
			}
		}
	}
}

func job(r *rand.Rand, project api.ProjectID, at time.Time) Job {
	thing := things[skewed(r, len(things))]
	other := things[r.IntN(len(things))]
	prompts := []string{"Rename the page about the %s to \"Manage a %s\"", "Document how a %s works with a %s",
		"Fix the links from the %s page to the %s page", "Add a warning about the %s to the page about the %s",
		"Replace \"%s\" with \"%s\" in the guides"}
	prompt := fmt.Sprintf(prompts[r.IntN(len(prompts))], thing, other)
	id := api.JobID(api.NewID(api.JobPrefix, at))
	j := api.Job{ID: id, Status: api.JobCompleted, Source: api.JobSource{Repository: "docs", Ref: "main"}, Model: "builtin",
		CreatedAt: at, UpdatedAt: at.Add(time.Duration(1+r.IntN(120)) * time.Second), Title: prompt,
		Message: "2 pages were changed.", Outcome: api.OutcomeChanged}
	row := api.JobRow{Project: project, Branch: "docent/" + string(id), Halt: api.HaltCompleted,
		User: "key_of_the_docs_team"}
	switch k := r.IntN(100); {
	case k < 6:
		j.Status, j.Outcome, j.Message, row.Halt = api.JobFailed, "", "The repository could not be reached.", api.HaltError
	case k < 14:
		j.Outcome, j.Message = api.OutcomeNothingToDo, "There was nothing to change."
	case k < 20:
		j.Outcome, j.Message = api.OutcomeNeedsDetail, "Name the page that is meant."
	}
	row.Archived = r.IntN(4) == 0
	if row.Archived {
		archived := j.UpdatedAt.Add(time.Hour)
		j.ArchivedAt = &archived
	}
	row.Job = j
	return Job{Row: row, Prompt: prompt}
}
