// Package pages is the documentation as its readers meet it: its pages, the addresses that they are reached by, the
// links between them, and the navigation. It reads a workspace as it is now; what it writes are texts for the
// workspace.
package pages
