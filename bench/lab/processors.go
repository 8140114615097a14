package lab

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// A Partition gives the servers that are measured processors of their own, and this process, which measures them, the
// others. Where it is nil, all use all.
type Partition struct {
	procs    int
	affinity affinity // GOMAXPROCS bounds Go's code alone, not what the kernel does for a server on other processors
}

// PartitionProcessors gives n processors to the servers and keeps this process to the others; to all of them where none
// are left.
func PartitionProcessors(n int) (*Partition, error) {
	runtime.GOMAXPROCS(max(1, runtime.NumCPU()-n))
	a, err := setAffinity(n)
	return &Partition{n, a}, err
}

// start starts a process on the servers' processors.
func (p *Partition) start(server *exec.Cmd) error {
	if p == nil {
		return server.Start()
	}
	server.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", p.procs+1)) // as the server sets it by itself
	return p.affinity.start(server)
}
