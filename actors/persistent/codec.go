package persistent

import (
	"fmt"
	"reflect"

	"github.com/fxamacker/cbor/v2"

	"docent/persistence/journal"
)

// encoding keeps times to the nanosecond, in text: the default of the encoder would cut them to seconds.
var encoding = func() cbor.EncMode {
	m, err := cbor.EncOptions{Time: cbor.TimeRFC3339NanoUTC}.EncMode()
	if err != nil {
		panic(err)
	}
	return m
}()

// A Codec knows the events of one kind by their names on disk. Names are added, never changed or used again.
type Codec[E any] struct {
	names map[reflect.Type]string
	types map[string]reflect.Type
}

// NewCodec makes a codec of one event for each name.
func NewCodec[E any](events map[string]E) *Codec[E] {
	c := &Codec[E]{make(map[reflect.Type]string), make(map[string]reflect.Type)}
	for name, ev := range events {
		c.names[reflect.TypeOf(ev)], c.types[name] = name, reflect.TypeOf(ev)
	}
	return c
}

// Encode makes an event as it is stored.
func (c *Codec[E]) Encode(ev E) (journal.Event, error) {
	name, ok := c.names[reflect.TypeOf(ev)]
	if !ok {
		return journal.Event{}, fmt.Errorf("encode %T: no name on disk", ev)
	}
	data, err := encoding.Marshal(ev)
	if err != nil {
		return journal.Event{}, fmt.Errorf("encode %s: %w", name, err)
	}
	return journal.Event{Type: name, Data: data}, nil
}

// Decode reads an event as it is stored.
func (c *Codec[E]) Decode(stored journal.Event) (ev E, err error) {
	t, ok := c.types[stored.Type]
	if !ok {
		return ev, fmt.Errorf("unknown event type %q", stored.Type)
	}
	v := reflect.New(t)
	if err := cbor.Unmarshal(stored.Data, v.Interface()); err != nil {
		return ev, fmt.Errorf("decode %s: %w", stored.Type, err)
	}
	return v.Elem().Interface().(E), nil
}

// EncodeSnapshot makes a snapshot as it is stored.
func EncodeSnapshot(id string, v any) ([]byte, error) {
	data, err := encoding.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode the snapshot of %s: %w", id, err)
	}
	return data, nil
}

// DecodeSnapshot reads a snapshot as it is stored. Version, a part of v, has to be the one that is wanted then.
func DecodeSnapshot(data []byte, v any, version *int, want int) error {
	if err := cbor.Unmarshal(data, v); err != nil {
		return fmt.Errorf("decode the snapshot: %w", err)
	}
	if *version != want {
		return fmt.Errorf("unknown snapshot version %d", *version)
	}
	return nil
}
