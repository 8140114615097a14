package thread

import (
	"fmt"

	"github.com/fxamacker/cbor/v2"

	"docent/persistence/journal"
)

// Names of events on disk. Names are added, never changed or used again.
const (
	openedV1   = "thread.opened.1"
	askedV1    = "thread.asked.1"
	answeredV1 = "thread.answered.1"
	retriedV1  = "thread.retried.1"
	failedV1   = "thread.failed.1"
	ratedV1    = "thread.rated.1"
)

// A RecoverError says that what is stored of a thread cannot be understood. The thread stands still until a person has
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
	case Opened:
		name = openedV1
	case Asked:
		name = askedV1
	case Answered:
		name = answeredV1
	case Retried:
		name = retriedV1
	case TurnFailed:
		name = failedV1
	case Rated:
		name = ratedV1
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
	case openedV1:
		return decodeAs[Opened](stored)
	case askedV1:
		return decodeAs[Asked](stored)
	case answeredV1:
		return decodeAs[Answered](stored)
	case retriedV1:
		return decodeAs[Retried](stored)
	case failedV1:
		return decodeAs[TurnFailed](stored)
	case ratedV1:
		return decodeAs[Rated](stored)
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
