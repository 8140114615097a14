// Command manifests builds a folder of Kubernetes manifests as `kubectl apply --kustomize` does, or a Helm chart as `helm
// template` does, and holds what comes out to what an API server would say of it, without one: it prints the manifests, or
// everything that is wrong with them.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func main() {
	args := os.Args[1:]
	if len(args) == 0 || len(args) > 2 {
		fmt.Fprintln(os.Stderr, "usage: manifests FOLDER, or manifests CHART [VALUES]")
		os.Exit(2)
	}
	if err := run(args[0], args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "manifests:", err)
		os.Exit(1)
	}
}

func run(path string, values []string) error {
	build := kustomized
	if _, err := os.Stat(path + "/Chart.yaml"); err == nil || strings.HasSuffix(path, ".tgz") {
		build = func(path string) ([]string, error) { return rendered(path, values) }
	}
	built, err := build(path)
	if err != nil {
		return err
	}
	c, err := newChecker()
	if err != nil {
		return err
	}
	for _, one := range built {
		if err := c.read([]byte(one)); err != nil {
			return fmt.Errorf("%w, in\n%s", err, one)
		}
	}
	if err := c.together(); err != nil {
		return err
	}
	_, err = fmt.Print(strings.Join(built, "---\n"))
	return err
}

// kustomized are the manifests of a folder.
func kustomized(folder string) (list []string, err error) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, err
	}
	for _, r := range built.Resources() {
		one, err := r.AsYAML()
		if err != nil {
			return nil, err
		}
		list = append(list, string(one))
	}
	return list, nil
}

// rendered are the manifests of a chart, released as docent into a namespace of that name.
func rendered(path string, files []string) (list []string, err error) {
	chart, err := loader.Load(path)
	if err != nil {
		return nil, err
	}
	values := common.Values{}
	if len(files) > 0 {
		if values, err = common.ReadValuesFile(files[0]); err != nil {
			return nil, err
		}
	}
	options := common.ReleaseOptions{Name: "docent", Namespace: "docent", Revision: 1, IsInstall: true}
	with, err := util.ToRenderValues(chart, values, options, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	texts, err := (engine.Engine{Strict: true}).Render(chart, with)
	if err != nil {
		return nil, err
	}
	for name, text := range texts {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		for one := range strings.SplitSeq("\n"+text, "\n---\n") {
			if one = strings.TrimSpace(one); one != "" {
				list = append(list, one+"\n")
			}
		}
	}
	slices.Sort(list)
	return list, nil
}
