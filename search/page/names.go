package page

import (
	"path"
	"strings"
)

// FileName is what a page's path says as a title: the name of its file, without numbers that order it.
func (r *Record) FileName() string {
	name := strings.TrimSuffix(path.Base(r.Path), path.Ext(r.Path))
	return strings.TrimLeft(name, "0123456789-_. ")
}

// AtRoot reports whether a page is the one that a site begins with.
func (r *Record) AtRoot() bool {
	if r.Shown == "" {
		return true
	}
	below := strings.Count(strings.Trim(r.Shown, "/"), "/")
	switch strings.ToLower(r.FileName()) {
	case "readme":
		return below == 0 && strings.EqualFold(r.Shown, "readme")
	case "home", "introduction", "intro", "overview", "welcome":
		return below == 0
	}
	return false
}
