// Command manifests builds a folder of Kubernetes manifests as `kubectl apply --kustomize` does, and holds what comes out to
// what an API server would say of it, without one: it prints the manifests, or everything that is wrong with them.
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: manifests FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "manifests:", err)
		os.Exit(1)
	}
}

func run(folder string) error {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return err
	}
	text, err := built.AsYaml()
	if err != nil {
		return err
	}
	c, err := newChecker()
	if err != nil {
		return err
	}
	for _, r := range built.Resources() {
		one, err := r.AsYAML()
		if err != nil {
			return err
		}
		if err := c.read(one); err != nil {
			return fmt.Errorf("%s %s: %w", r.GetKind(), r.GetName(), err)
		}
	}
	if err := c.together(); err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}
