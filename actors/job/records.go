package job

import (
	"slices"
	"strings"

	"docent/api"
	"docent/forge"
	"docent/persistence/journal"
)

// maxRecorded is how many bytes of changes a job keeps for the restoring of branches; the newest ones.
const maxRecorded = 4 << 20

// recorded is a publication to an open pull request of the built-in host, which has no other copy of its commits.
type recorded struct {
	Edited Edited `cbor:"1,keyasint"`
	Commit string `cbor:"2,keyasint"`
}

func (r recorded) size() int {
	n := len(r.Edited.Result.Body)
	for _, c := range r.Edited.Result.Changes {
		n += len(c.Path) + len(c.Content)
	}
	return n
}

// recording keeps what has become a commit. Links of the built-in host are paths; other hosts keep their own branches.
func (s state) recording(p forge.Published) state {
	if p.Joined != "" || p.Commit == "" || !strings.HasPrefix(p.Link, "/") {
		return s
	}
	ed := s.edited
	ed.Result.Message, ed.Result.Todos = "", nil // no part of a commit
	s.records = append(slices.Clip(s.records), recorded{ed, p.Commit})
	left := maxRecorded
	for i, r := range slices.Backward(s.records) {
		if left -= r.size(); left < 0 {
			s.records = slices.Clone(s.records[i+1:])
			break
		}
	}
	return s
}

// Records lists what a job has published to the branch of an open pull request of the built-in host, the oldest first:
// with it a branch that is lost is made again.
func Records(id api.JobID, project api.Project, rec journal.Recovered, branch string) ([]forge.Record, error) {
	s, err := kind.Recovered(string(id), rec)
	if err != nil {
		return nil, err
	}
	var list []forge.Record
	for _, r := range s.records {
		if r.Edited.Branch == branch {
			s.edited = r.Edited
			list = append(list, forge.Record{Publication: s.publication(project), Commit: r.Commit})
		}
	}
	return list, nil
}

// publication is what an edit is published as.
func (s state) publication(project api.Project) forge.Publication {
	ed := s.edited
	p := forge.Publication{
		Project: project, Job: s.id, Branch: ed.Branch, Base: ed.Base, Parent: ed.Parent,
		Message: ed.Result.Commit, At: ed.At, Title: ed.Result.Title, Body: ed.Result.Body, Draft: s.draft || ed.Result.Draft || project.Pulls.Draft,
		Author: ed.Author, SignOff: ed.SignOff,
		Asker: s.user, Review: ed.Result.Review,
		Join: s.wish == "", // who names a branch wants that one
	}
	for _, c := range ed.Result.Changes {
		p.Changes = append(p.Changes, forge.Change{Path: c.Path, Content: c.Content, Delete: c.Delete})
	}
	return p
}
