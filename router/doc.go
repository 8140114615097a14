// Package router is the HTTP edge: it decodes, authorizes, limits, asks and encodes, and holds no state that a
// restart would miss.
//
// # What each key may do
//
// An admin key serves the agent, update and analytics operations of every project of its organization; its scopes
// divide reading from writing. An assistant key is public: it serves the assistant, search, page and feedback
// operations of one project, from browsers too (CORS), and nothing else. A project, domain, job or thread of somebody
// else is answered exactly like one that nobody made. Probes (/healthz, /readyz), the machine-readable contract
// (/openapi.json) and the pages of the built-in code host need no key; merging and closing there need a session,
// which is opened with an admin key.
//
// # What is promised
//
// Every response carries X-Request-Id, and every error the one JSON form of package api's words (or a page, if the
// caller is a browser on a page). A request that is refused costs no quota and changes nothing. At most so many
// requests are worked on and so many streams are open as Bounds says, and request bodies share one budget of memory:
// beyond that the answer is an early 503 with Retry-After.
//
// # What is where
//
// A file for each resource, and one for each thing that all requests pass: the exchange, keys, quotas, errors. Handlers
// share one Server and one exchange. What stands by itself is a package below: deprecated, forward, llms, mcp, oauth,
// overload, ownkey, peer, proof, readertoken, reqbody, sockets, widget.
//
// A question passes guarded (router.go: a place among requests, early refusal, key, project), then pose (assistant.go):
// open (budgets.go: a place among streams), proven (proofofwork.go) and enter (limits.go: queue, quotas); then its
// thread decides (actors/thread/state.go, ask). The console's questions come in at Put (assistant.go).
//
// The routes are in router.go on one screen; api/openapi/openapi.yaml describes them completely, and the tests of this
// package hold every request and response against it.
package router
