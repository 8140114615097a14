package cluster

// Owner is the node that runs what has the name, as far as this one knows.
func (m *Members) Owner(name string) (Node, bool) { return m.owner(Shard(name)) }
