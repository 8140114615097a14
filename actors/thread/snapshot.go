package thread

import (
	"errors"
	"time"

	"docent/actors/persistent"
	"docent/api"
	"docent/persistence/journal"
)

// snapshotV1 is a state on disk. Fields are added, never changed or used again; events after it are replayed on top.
type snapshotV1 struct {
	Version     int           `cbor:"0,keyasint"`
	Project     api.ProjectID `cbor:"1,keyasint"`
	Caller      string        `cbor:"2,keyasint"`
	KeyHash     [32]byte      `cbor:"3,keyasint"`
	Opened      time.Time     `cbor:"4,keyasint"`
	Done        []Exchange    `cbor:"5,keyasint"`
	Open        []Exchange    `cbor:"6,keyasint"`
	Chat        string        `cbor:"7,keyasint"`
	Attempt     int           `cbor:"8,keyasint"`
	Interrupted int           `cbor:"9,keyasint"`
	Panicked    int           `cbor:"10,keyasint"`
	Replaced    []Exchange    `cbor:"11,keyasint,omitempty"`
	Left        int           `cbor:"12,keyasint,omitempty"`
	Reader      string        `cbor:"13,keyasint,omitempty"`
}

func (s *state) snapshot() ([]byte, error) {
	return persistent.EncodeSnapshot(string(s.id), snapshotV1{Version: 1, Project: s.project, Caller: s.caller,
		KeyHash: s.keyHash, Opened: s.at,
		Done: s.done, Open: s.open, Chat: s.chat, Attempt: s.attempt, Interrupted: s.interrupted, Panicked: s.panicked,
		Replaced: s.replaced, Left: s.left, Reader: s.reader})
}

func restore(id api.ThreadID, data []byte) (state, error) {
	var v snapshotV1
	if err := persistent.DecodeSnapshot(data, &v, &v.Version, 1); err != nil {
		return state{}, err
	}
	if len(v.Done)+len(v.Open) == 0 {
		return state{}, errors.New("the snapshot holds no exchange")
	}
	return state{id: id, opened: true, project: v.Project, caller: v.Caller, keyHash: v.KeyHash, at: v.Opened,
		done: v.Done, open: v.Open, chat: v.Chat, attempt: v.Attempt, interrupted: v.Interrupted, panicked: v.Panicked,
		replaced: v.Replaced, left: v.Left, reader: v.Reader}, nil
}

// History is the conversation that the journal holds of a thread. It is false if no thread was opened.
func History(id api.ThreadID, rec journal.Recovered) (Conversation, bool, error) {
	s, err := kind.Recovered(string(id), rec)
	if err != nil || !s.opened {
		return Conversation{}, false, err
	}
	return s.conversation(), true, nil
}
