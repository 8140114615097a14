// Package automation starts jobs by itself: at times (cron) and on pushes.
//
// A run that is due is stored in the catalog before it is carried out, and with it the automation's next time, under
// a key that names the time or the commit. So a run is carried out once, whatever dies in between, however the clock
// is set, and however often a push is announced. One run makes up for all the times that were missed while no server
// ran.
package automation
