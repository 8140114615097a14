// Package web serves the pages that people look at in a browser: the console, sign-in and the pull requests of the
// built-in code host.
//
// Pages are made on the server. Reading, and everything that is done with a form, works without scripts; htmx replaces
// parts of pages where scripts run, and server-sent events keep parts up to date. A page loads and runs nothing but
// what this server sends, in files of their own (package assets).
//
// The pages are made by the packages people, projects, insights, work, system and manual. Each hands over its routes, with who
// may see or do what; package console has what they share. A request passes the router of the API first, which limits,
// logs and counts it; then console's guard, which finds out the visitor, the project, and whether a form is from a page
// of ours; then the handler of its page, which reads and acts through the interfaces in ports.go and renders a
// template.
//
// A form's values become a resource of package api, whose Validate says what is wrong; what only stores can tell is asked
// in cmd/docent/operator (checkSettings), and console.Faults puts each fault beside its field.
package web
