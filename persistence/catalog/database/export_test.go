package database

// Channel is where nodes tell each other of changes.
func (db *DB) Channel() string { return db.nodes.channel }
