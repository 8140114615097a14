package database

import "testing"

func TestNobodyIsTakenToWatchWhoHasStopped(t *testing.T) {
	db := new(DB)
	_, stop := db.Watch("docs")
	_, stopBlog := db.Watch("blog")
	stop()
	stop()
	if db.watched.idle() {
		t.Error("one has not stopped")
	}
	if stopBlog(); !db.watched.idle() {
		t.Error("somebody is still taken to watch")
	}
}
