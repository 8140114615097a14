package api

import "time"

// A Delivery is one request that reached a project's webhook, and what came of it.
type Delivery struct {
	At         time.Time `json:"at"`
	Sender     string    `json:"sender,omitempty"` // the code host, as it names itself
	Event      string    `json:"event,omitempty"`
	Repository string    `json:"repository,omitempty"`
	Branch     string    `json:"branch,omitempty"`
	Commit     string    `json:"commit,omitempty"`
	Status     int       `json:"status"`           // that was answered
	Outcome    string    `json:"outcome"`          // in words
	Update     UpdateID  `json:"update,omitempty"` // that reads the documentation again
}

// Accepted reports whether the request was signed with the project's secret and understood.
func (d Delivery) Accepted() bool { return d.Status >= 200 && d.Status < 300 }
