// Package article reads pages of web sites as their readers see them: of an HTML page its main part as Markdown, with
// the anchors of its headings, its code as it stands, tables, notes and the panels of tabs; and what it says of itself
// to programs. It asks nobody, and never refuses a page: what it does not understand is text.
package article
