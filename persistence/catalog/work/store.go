// Package work stores what is done for projects and what is reported of it: automations and their runs, updates of
// documentation, pull requests of the built-in host with their comments, what is followed of those on other hosts, and
// outgoing webhooks with their events and deliveries, and questions written for sections.
package work

import "docent/persistence/catalog/database"

// Part is what the work brings to the schema.
var Part = database.Part{
	Tables: []database.Table{
		database.TableOf[pullRow]("id"),
		database.TableOf[counterRow]("name"),
		database.TableOf[updateRow]("id"),
		database.TableOf[automationRow]("id"),
		database.TableOf[runRow]("key"),
		database.TableOf[commentRow]("id"),
		database.TableOf[reviewRow]("id"),
		database.TableOf[askRow]("id"),
		database.TableOf[webhookRow]("id"),
		database.TableOf[webhookStateRow]("webhook_id"),
		database.TableOf[webhookEventRow]("id"),
		database.TableOf[webhookDeliveryRow]("id"),
		database.TableOf[writtenRow]("id"),
		database.TableOf[writtenStateRow]("id"),
	},
	Steps: []database.Step{{Migration: reviewsMigration, Do: beginReviews}, {Migration: reportsMigration, Do: moveReports}},
}

// A Store keeps what is done for projects.
type Store struct{ db *database.DB }

// New makes the store in a database.
func New(db *database.DB) *Store { return &Store{db} }
