// Package site knows the generators of documentation sites: which one makes a site, where it shows a page and under what
// names, and which files it publishes at all. It reads their configurations and never runs them.
package site
