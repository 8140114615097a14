// Package say writes what users and language models read: refusals, and words of others within a sentence, bounded and
// without characters that a reader does not see.
package say
