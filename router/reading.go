package router

import (
	"net/http"
	"sync"
	"time"

	"docent/actors/thread"
	"docent/api"
	"docent/api/stream"
	"docent/internal/measure"
	"docent/router/sockets"
)

const (
	chunk    = 32 << 10 // what is written before the next part is encoded, when a reader has much to catch up on
	keptSize = 64 << 10 // larger buffers are not kept for the next stream
	together = 32       // parts that are taken from the log at once
	countAt  = 32       // parts after which a stream's figures go to the metrics, which all streams share
)

// A reading is one reader's view of an answer, in one wire form: what was encoded of the turn's log so far. It is the
// sockets.Source of streams that are written there, and what a handler writes.
type reading struct {
	server *Server
	enc    *stream.Encoder
	log    *stream.Log
	reader *stream.Reader
	texts  bool      // text was encoded
	more   bool      // the log says that more may come
	asked  time.Time // when the question came; zero if the answer was there before
	from   measure.Trace
	figures
}

// measured measures the reading of a new question's answer.
func (r *reading) measured(req *http.Request, x *exchange, turn *thread.Turn) {
	if turn.Fresh {
		r.asked, r.from = x.began, measure.TraceOf(req.Context())
	}
}

// newReading is the view of one who opened the thread, if there is a key of it, and who may see how the answer came
// about, if it explains.
func (s *Server) newReading(x *exchange, turn *thread.Turn, form stream.Form) *reading {
	r := &reading{server: s, enc: stream.NewEncoder(form).WithKey(turn.Key).For(x.asked), log: turn.Log, more: true,
		figures: figures{m: s.metrics.stream(form)}}
	if x.key.Kind == api.AdminKey {
		r.enc.WithExplanation()
	}
	return r
}

// Append encodes what the log has more than the reader was given. The reader rests after text, if there is a pace.
func (r *reading) Append(dst []byte) (out []byte, wait bool) {
	from, took, had := len(dst), 0, r.texts
	space := partSpace.Get().(*[together]stream.Part)
	for {
		parts, more := r.reader.TakeInto(space[:0], chunk-(len(dst)-from))
		for i := range parts {
			r.texts = r.texts || parts[i].Kind == stream.Text
			dst = r.enc.Append(dst, parts[i])
		}
		took, r.more = took+len(parts), more
		last := len(parts) < together
		clear(parts) // what they hold is the log's, and goes with it
		if last || len(dst)-from >= chunk {
			break
		}
	}
	partSpace.Put(space)
	if r.texts && !had && !r.asked.IsZero() {
		measure.Seconds(r.m.first, time.Since(r.asked), r.from)
	}
	r.add(took, len(dst)-from)
	wait = r.texts && took > 0 && r.server.Bounds.Pace > 0
	r.reader.Rest(wait)
	return dst, wait
}

var partSpace = sync.Pool{New: func() any { return new([together]stream.Part) }}

// KeepAlive appends what the reader passes over.
func (r *reading) KeepAlive(dst []byte) []byte {
	from := len(dst)
	dst = r.enc.KeepAlive(dst)
	r.add(0, len(dst)-from)
	r.count()
	return dst
}

// End is how the answer ends, if it does, with what to tell its reader if the answer itself does not say so.
func (r *reading) End(dst []byte) (out []byte, how string) {
	reason := ""
	switch {
	case r.enc.Ended():
		if !r.asked.IsZero() {
			measure.Seconds(r.m.whole, time.Since(r.asked), r.from)
			r.asked = time.Time{}
		}
		return dst, "finished"
	case !r.more && r.log.Broken(), r.server.Together && r.server.isCut():
		return dst, sockets.EndedMoved
	case !r.more: // the log ended without saying how
		how, reason = sockets.EndedBroken, "the answer was interrupted; resume the stream or ask again"
	case r.server.isCut():
		how, reason = sockets.EndedCut, "the service is restarting; the answer goes on and can be resumed"
	default:
		return dst, ""
	}
	from := len(dst)
	dst = r.enc.Append(dst, stream.Part{Kind: stream.Error, Text: reason})
	r.add(0, len(dst)-from)
	return dst, how
}

// Watch calls changed when the log has more than the reader was given.
func (r *reading) Watch(changed func()) (stop func()) {
	r.reader = r.log.Watch(0, changed)
	return r.reader.Close
}

// figures are what a stream has to tell the metrics.
type figures struct {
	m                     *streamMetrics
	parts, flushes, bytes int
}

// add counts what goes out together.
func (f *figures) add(parts, bytes int) {
	if f.parts += parts; f.parts >= countAt {
		f.count()
	}
	if bytes > 0 {
		f.bytes += bytes
		f.flushes++
	}
}

// count brings the figures to the metrics.
func (f *figures) count() {
	f.m.parts.Add(float64(f.parts))
	f.m.flushes.Add(float64(f.flushes))
	f.m.bytes.Add(float64(f.bytes))
	f.parts, f.flushes, f.bytes = 0, 0, 0
}
