// Package rules reads instructions of fixed forms without a language model: a prompt becomes a list of operations, or a
// Misunderstanding that says which part was not understood, and the nearest form. It guesses nothing.
//
// Parse cuts the prompt into tokens (lex.go), matches the forms (forms.go, in the notation of pattern.go) and passes
// over what cannot be an instruction (prompt.go).
package rules
