package api

import "time"

// A Reader is who reads a site, as the site's own server says.
type Reader struct {
	Subject string    // who it is
	Groups  []string  // that the reader is in
	Until   time.Time // that it is known
}
