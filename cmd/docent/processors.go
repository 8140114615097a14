package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// A division gives the servers that are measured processors of their own, and this process, which measures them, the others. Where
// it is nil, all use all.
type division struct {
	procs    int
	affinity affinity // a number of threads for Go's code alone does not bound what the kernel does for a server elsewhere
}

// divideProcessors keeps this process to what is left of its processors without the first n; to all of them where none are left.
func divideProcessors(n int) (*division, error) {
	runtime.GOMAXPROCS(max(1, runtime.NumCPU()-n))
	a, err := divideAffinity(n)
	return &division{n, a}, err
}

// start starts a server on its processors.
func (d *division) start(server *exec.Cmd) error {
	if d == nil {
		return server.Start()
	}
	server.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", d.procs+1)) // as the server sets it by itself (oneThreadMore)
	return d.affinity.start(server)
}
