//go:build !unix

package systemd

import "time"

// processorTime is not asked for if there is no systemd.
func processorTime() time.Duration { return 0 }
