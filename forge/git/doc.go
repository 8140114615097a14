// Package git implements one bare git repository on disk: its objects and references, edits, diffs and merges.
//
// What a reference reaches is on disk before the reference is, and what is read is checked against its name. Reading
// has bounds, since the content is anybody's: bytes of an object, names and bytes of a commit's files, open files.
// What does not match its name or its form is ErrDamaged; a machine that is short of something is a failure.Error that
// passes. A repository is used by one process at a time, by any number of goroutines: reading needs no lock of the
// caller, and references are moved by the caller that has the repository's turn.
//
// From the outside come plumbing.Hash and other data types of go-git; decision 0005 says what else of it is used, and
// what is not. The files, in the order to read them:
//
//	object.go      the forms of blobs, trees and commits
//	disk.go        files that are opened, read and written durably
//	repository.go  a Store: create, open, write
//	read.go        objects from single files and packs
//	refs.go, notes.go, history.go
//	pack.go        writing packs; incoming.go reads one that was fetched, packfor.go makes one for a push
//	repack.go      single files become packs
//	edit.go, diff.go, patch.go, merge.go, paths.go
//	copy.go        what is sound of a damaged repository
package git
