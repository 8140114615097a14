package stream

// A Log holds the parts of one answer. The zero Log is not usable: NewLog.
type Log struct{}
