// Package forward implements the answering of requests that reached one node by another one, as a whole.
//
//	client ── edge, which finds that another node runs the actor ── internal listener of that node ── edge
//
// A request is handled as usual. If a handler meets an actor of another node, that is noted in the request's
// cluster.Slot; if nothing was written by then, the handler's answer is dropped and the request is sent, with its body,
// to the internal listener of the node that the note names. So no route knows of it.
//
// A forwarded request is not forwarded on. A node that does not run the actor (any more) answers 421 in a way that only
// nodes see, and the first node looks again. If nobody runs it, the first node waits for somebody who is to come, and
// then answers 503 with Retry-After.
//
// If the node dies before its answer begins, the request is sent to the next owner, if it may be repeated: if it
// changes nothing, has an Idempotency-Key, or its handler said so (cluster.Repeatable). Otherwise, and in the middle of
// an answer, the client's connection is broken off: whether the request took place is not known, and an answer that was
// cut must not look whole.
//
// Nodes know each other by a key that both derive from the secret of the cluster. Nothing else can speak to the internal
// listener.
package forward
