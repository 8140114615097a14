//go:build !unix

package systemd

import "time"

// processorTime is not asked for where there is no systemd.
func processorTime() time.Duration { return 0 }
