package database

// Channel is the channel on which nodes tell each other of changes.
func (db *DB) Channel() string { return db.nodes.channel }
