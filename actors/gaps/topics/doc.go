// Package topics finds what a documentation lacks, from the questions that it could not answer.
//
// Questions are grouped into topics by what their words mean: words are cut and stemmed as the search does it, words
// that mean the same count as one, and each weighs by how rare it is among the questions and in the documentation. The
// same questions give the same topics, in whatever order they come.
//
// A topic is known by a question in it, so that a link to it stays good while more questions come; one that somebody
// acted on is stored (api.Gap) and found again by its words. The package also drafts the instruction for the agent that
// would close a gap. It touches nothing outside.
package topics
