// Package people stores who may do what, and who did: organizations' projects and their keys, the people who sign in,
// with their roles, sessions, invitations and links, and the audit log. What every request asks, such as whose key it
// is, is answered from memory for a short time.
package people

import (
	"docent/api"
	"docent/persistence/catalog/database"
)

// Part is what people bring to the schema.
var Part = database.Part{
	Tables: []database.Table{
		database.TableOf[projectRow]("id"),
		database.TableOf[keyRow]("id"),
		database.TableOf[personRow]("id"),
		database.TableOf[memberRow]("id"),
		database.TableOf[sessionRow]("id"),
		database.TableOf[invitationRow]("id"),
		database.TableOf[linkRow]("id"),
		database.TableOf[auditRow]("id"),
	},
	Steps: []database.Step{{Migration: operatorsMigration, Do: makeOperators}, {Migration: reportsMigration, Do: moveTimeZones}},
}

// A Store keeps projects, keys, people and what they did. Last use of keys, and when sessions were seen, are written
// every few seconds.
type Store struct {
	db       *database.DB
	projects *database.Lookup[api.ProjectID, api.Project]
	domains  *database.Lookup[string, api.Project]
	keys     *database.Lookup[[32]byte, api.Key]
	touched  touches
	people   *database.Lookup[api.PersonID, api.Person]
	sessions *database.Lookup[[32]byte, api.SignIn]
	seen     seen
	audited  ascending
}

// Names of what lookups forget together, as nodes tell them to each other.
const (
	lookKeys     = "keys"
	lookProjects = "projects"
	lookPeople   = "people"
	lookSessions = "sessions"
)

// New makes the store in a database.
func New(db *database.DB) *Store {
	s := &Store{db: db}
	hashed := func(hash [32]byte) string { return string(hash[:]) }
	s.projects = database.NewLookup(db, lookProjects, "projects", func(id api.ProjectID) string { return string(id) }, s.loadProject)
	s.domains = database.NewLookup(db, lookProjects, "domains", func(domain string) string { return domain }, s.loadDomain)
	s.keys = database.NewLookup(db, lookKeys, "keys", hashed, s.loadKey)
	s.people = database.NewLookup(db, lookPeople, "people", func(id api.PersonID) string { return string(id) }, s.loadPerson)
	s.sessions = database.NewLookup(db, lookSessions, "sessions", hashed, s.loadSession)
	db.OnMessage(func(what database.Message) { s.dropSessions(what.Sessions) }, func() {})
	db.EveryTouch("write key uses", "the last use of keys is not written yet", "the last use of keys is not written", s.writeTouches)
	db.EveryTouch("write session uses", "when sessions were seen is not written yet", "when sessions were last seen is not written",
		s.writeSeen)
	return s
}
