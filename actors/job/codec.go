package job

import (
	"fmt"

	"github.com/fxamacker/cbor/v2"

	"docent/persistence/journal"
)

// Names of events on disk. Names are added, never changed or used again.
const (
	createdV1    = "job.created.1"
	promptedV1   = "job.prompted.1"
	progressedV1 = "job.progressed.1"
	editedV1     = "job.edited.1"
	publishedV1  = "job.published.1"
	retriedV1    = "job.retried.1"
	staleV1      = "job.stale.1"
	finishedV1   = "job.finished.1"
	failedV1     = "job.failed.1"
	archivedV1   = "job.archived.1"
	steppedV1    = "job.stepped.1"
)

// A RecoverError says that what is stored of a job cannot be understood. The job stands still until a person has
// looked at it; others go on.
type RecoverError struct {
	Stream string
	Seq    uint64 // of the record
	Err    error
}

func (e *RecoverError) Error() string {
	return fmt.Sprintf("recover %s at event %d: %v", e.Stream, e.Seq, e.Err)
}

// Unwrap makes every RecoverError a journal.ErrCorrupt as well.
func (e *RecoverError) Unwrap() []error { return []error{journal.ErrCorrupt, e.Err} }

// encoding keeps times to the nanosecond, in text: the default of the encoder would cut them to seconds.
var encoding = func() cbor.EncMode {
	m, err := cbor.EncOptions{Time: cbor.TimeRFC3339NanoUTC}.EncMode()
	if err != nil {
		panic(err)
	}
	return m
}()

func encode(ev Event) (journal.Event, error) {
	var name string
	switch ev.(type) {
	case Created:
		name = createdV1
	case Prompted:
		name = promptedV1
	case Progressed:
		name = progressedV1
	case Edited:
		name = editedV1
	case Published:
		name = publishedV1
	case Retried:
		name = retriedV1
	case Stale:
		name = staleV1
	case Finished:
		name = finishedV1
	case Failed:
		name = failedV1
	case Archived:
		name = archivedV1
	case Stepped:
		name = steppedV1
	default:
		return journal.Event{}, fmt.Errorf("encode %T: no name on disk", ev)
	}
	data, err := encoding.Marshal(ev)
	if err != nil {
		return journal.Event{}, fmt.Errorf("encode %s: %w", name, err)
	}
	return journal.Event{Type: name, Data: data}, nil
}

func decode(stored journal.Event) (Event, error) {
	switch stored.Type {
	case createdV1:
		return decodeAs[Created](stored)
	case promptedV1:
		return decodeAs[Prompted](stored)
	case progressedV1:
		return decodeAs[Progressed](stored)
	case editedV1:
		return decodeAs[Edited](stored)
	case publishedV1:
		return decodeAs[Published](stored)
	case retriedV1:
		return decodeAs[Retried](stored)
	case staleV1:
		return decodeAs[Stale](stored)
	case finishedV1:
		return decodeAs[Finished](stored)
	case failedV1:
		return decodeAs[Failed](stored)
	case archivedV1:
		return decodeAs[Archived](stored)
	case steppedV1:
		return decodeAs[Stepped](stored)
	}
	return nil, fmt.Errorf("unknown event type %q", stored.Type)
}

func decodeAs[E Event](stored journal.Event) (Event, error) {
	var ev E
	if err := cbor.Unmarshal(stored.Data, &ev); err != nil {
		return nil, fmt.Errorf("decode %s: %w", stored.Type, err)
	}
	return ev, nil
}
