// Package workspace is what one run of the agent works on: the files of a repository at one commit, and the edits that
// are laid over them. It reads through to the repository, writes nothing back to it, and refuses every edit that does
// not belong to the documentation.
package workspace
