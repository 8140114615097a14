package thread

import (
	"errors"
	"fmt"
	"time"

	"github.com/fxamacker/cbor/v2"

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
}

func (s state) snapshot() ([]byte, error) {
	data, err := encoding.Marshal(snapshotV1{Version: 1, Project: s.project, Caller: s.caller, KeyHash: s.keyHash, Opened: s.at,
		Done: s.done, Open: s.open, Chat: s.chat, Attempt: s.attempt, Interrupted: s.interrupted, Panicked: s.panicked,
		Replaced: s.replaced})
	if err != nil {
		return nil, fmt.Errorf("encode the snapshot of %s: %w", s.id, err)
	}
	return data, nil
}

func restore(id api.ThreadID, data []byte) (state, error) {
	var v snapshotV1
	if err := cbor.Unmarshal(data, &v); err != nil {
		return state{}, fmt.Errorf("decode the snapshot: %w", err)
	}
	if v.Version != 1 {
		return state{}, fmt.Errorf("unknown snapshot version %d", v.Version)
	}
	if len(v.Done)+len(v.Open) == 0 {
		return state{}, errors.New("the snapshot holds no exchange")
	}
	return state{id: id, opened: true, project: v.Project, caller: v.Caller, keyHash: v.KeyHash, at: v.Opened,
		done: v.Done, open: v.Open, chat: v.Chat, attempt: v.Attempt, interrupted: v.Interrupted, panicked: v.Panicked,
		replaced: v.Replaced}, nil
}

// Stream is the name of a thread's stream in the journal.
func Stream(id api.ThreadID) string { return "thread/" + string(id) }

// recovered is the state that the journal holds of a thread; one that was never opened where it holds nothing.
func recovered(id api.ThreadID, rec journal.Recovered) (state, error) {
	s := state{id: id}
	if rec.Snapshot != nil {
		var err error
		if s, err = restore(id, rec.Snapshot); err != nil {
			return state{}, &RecoverError{Stream: Stream(id), Seq: rec.SnapSeq, Err: err}
		}
	}
	for i, stored := range rec.Events {
		ev, err := decode(stored)
		if err != nil {
			return state{}, &RecoverError{Stream: Stream(id), Seq: rec.SnapSeq + uint64(i) + 1, Err: err}
		}
		s = s.apply(ev)
	}
	if got := rec.SnapSeq + uint64(len(rec.Events)); rec.Seq != got {
		return state{}, &RecoverError{Stream: Stream(id), Seq: got + 1, Err: fmt.Errorf("the stream ends at %d, its records at %d", rec.Seq, got)}
	}
	return s, nil
}

// History is the conversation that the journal holds of a thread. It is false where no thread was opened.
func History(id api.ThreadID, rec journal.Recovered) (Conversation, bool, error) {
	s, err := recovered(id, rec)
	if err != nil || !s.opened {
		return Conversation{}, false, err
	}
	return s.conversation(), true, nil
}
