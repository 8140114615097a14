// Package health reports a server's status and metrics, as `docent status` and the console's System page show them, the
// newest records of its log, and the disk that its data directory is on.
//
// The figures are plain data; cmd/docent, which knows every package, fills them in.
package health
