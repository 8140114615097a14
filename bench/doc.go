// Package bench puts load on a server through its public API and over real connections, and reports what its callers
// would have seen: the time until an answer begins, gaps in it, what was lost, and what it cost the server.
//
// Latencies count from the moment at which a request was due by the schedule, not from when it could be sent: a server
// that stalls cannot hide it by keeping the next requests from being made (coordinated omission). If there is no
// schedule, because each caller asks again when its answer has ended (a closed loop), they count from the moment of
// asking.
//
// Every stream is checked while it is read: the protocol's own order, and where the model is a scripted one, each piece
// of the text. A stream that breaks off, lacks a piece, repeats one or ends without its end is lost. Limit is a bare
// server that writes the same bytes at the same times; what a server costs beyond it is its own doing.
package bench
