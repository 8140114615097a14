// Package uploads keeps zips that people upload, and unpacks them as sources of documentation.
//
// A zip is checked before it is kept, and takes the place of the one before whole or not at all. What is acknowledged is
// on the disk: after a crash the pages are made of it again.
package uploads
