// Package webhooks tells other systems what happens: jobs that end, pull requests that are opened, merged or closed,
// questions that the documentation does not answer, answers that readers rate down, weekly reports.
//
// Events are made from the journal, and from nothing else. A follower reads the journal on from where it was, and stores
// what it makes of it together with how far it has come, in one transaction: no event is lost in a crash, and none comes
// to be twice. Its id follows from the journaled fact, so receivers know again what they have got already.
//
// Each webhook has a cursor. Its events are sent one after the other: the next one only when the receiver has taken the
// one before, or when that was given up after three days: after (attempt.go) says when the next attempt is, and turn
// (deliver.go) waits for it. One that is sent and not stored as sent is sent again. A
// webhook costs no other one anything: each has its own turn, and those whose receivers fail share few places.
package webhooks
