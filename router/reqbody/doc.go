// Package reqbody reads what clients send: bodies in JSON, within bounds of size, memory and depth, and parameters of
// queries.
//
// All that is wrong with a request is reported at once: decoding goes on after a problem, and the error lists the field
// and the reason of each (Problems). What a field that a decoder does not know holds is ignored. Names are compared
// as they are written, and of a name that comes twice the last counts.
package reqbody
