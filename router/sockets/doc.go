// Package sockets writes long answers on connections that it takes from net/http.
//
// A handler that writes an answer while a language model thinks holds a goroutine, the goroutine that reads in its
// background, and 10 KB of buffers for minutes, and each of ten thousand such goroutines is woken for each word. Here
// an open answer is a connection and a struct of half a kilobyte. A few event loops write all of them: whenever one
// wakes it finds work for many.
//
// # How an answer gets here and away
//
// A handler that has not written anything hands its response to [Pool.Take] together with a [Source], which is one
// reader's view of the answer. The connection goes one way: net/http gives it to the pool, a loop writes the head and
// the answer, and after the next request has come the connection goes back to the same http.Server through a
// listener, as if it were new. What the pool can tell of the answer comes back once, in the function done.
//
//	                    net/http ◀─────────────────────────────────────────┐
//	                       │ Take                                          │ the next request has come,
//	                       ▼                                               │ handback listener
//	stalled ◀─────────▶ streaming ───────────────────────────▶ idle ───────┘
//	   │  the socket is    ▲            all is written           │
//	   │  full, has room   │                                     │ the idle time is over, or the server stops
//	   │                   ▼                                     ▼
//	   │                  paced   the pace is over,            closed
//	   │                          or the answer has ended        ▲
//	   └─────────────────────────────────────────────────────────┘ nothing was taken for the write timeout
//
// From each state the connection is closed when the client has gone, and when the pool is closed. Cut ends the
// answers that are streaming or paced in their own words, as the source has them; a stalled one is closed, since in
// the middle of a chunk there is nothing to be said.
//
// # Who touches what
//
// A connection belongs to one loop from Take to its end, and all but two fields of it are touched by that loop's
// goroutine alone. Everybody else (the answer's writer by the function that it got from Watch, epoll, Cut) says "look
// at this connection" by pushing it on the loop's lock-free list and waking the loop. A loop never waits for a
// socket: it writes what the socket takes, keeps the rest, and goes on when epoll tells that there is room.
//
// # What can go wrong
//
// A source that panics ends its own answer only. If a connection cannot be taken (TLS, HTTP/2 and 1.0, a server
// that was not attached, a system without epoll) Take is false and the handler writes the answer itself; both ways
// give the same bytes. An operator can have all answers written by their handlers: setting stream_writer.
package sockets
