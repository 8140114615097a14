package job

import (
	"docent/api"
	"docent/forge"
	"docent/persistence/journal"
)

// Records lists what a job has published to a branch, the oldest first, from all events of its stream: with it a branch
// that is lost is made again. It is empty where the events do not go back to the job's beginning.
func Records(id api.JobID, project api.Project, events []journal.Event, branch string) ([]forge.Record, error) {
	var list []forge.Record
	var created *Created
	var edited *Edited
	for _, stored := range events {
		ev, err := codec.Decode(stored)
		if err != nil {
			return nil, err
		}
		switch ev := ev.(type) {
		case Created:
			created = &ev
		case Edited:
			edited = &ev
		case Published:
			if created == nil {
				return nil, nil
			}
			if edited == nil || edited.Branch != branch || ev.Result.Joined != "" {
				continue
			}
			s := state{id: id, user: created.User, draft: created.Draft, wish: created.Branch, edited: *edited}
			list = append(list, forge.Record{Publication: s.publication(project), Commit: ev.Result.Commit})
		}
	}
	return list, nil
}

// publication is what an edit is published as.
func (s state) publication(project api.Project) forge.Publication {
	ed := s.edited
	p := forge.Publication{
		Project: project, Job: s.id, Branch: ed.Branch, Base: ed.Base, Parent: ed.Parent,
		Message: ed.Result.Commit, At: ed.At, Title: ed.Result.Title, Body: ed.Result.Body, Draft: s.draft,
		Asker: s.user, Review: ed.Result.Review,
		Join: s.wish == "", // who names a branch wants that one
	}
	for _, c := range ed.Result.Changes {
		p.Changes = append(p.Changes, forge.Change{Path: c.Path, Content: c.Content, Delete: c.Delete})
	}
	return p
}
