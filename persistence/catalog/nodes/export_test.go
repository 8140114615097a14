package nodes

import "docent/persistence/catalog/database"

const (
	BlobChunk  = blobChunk
	LeaseRenew = leaseRenew
)

func (s *Shared) DB() *database.DB { return s.db }
