package deploy

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"docent/cmd/docent/config"
)

// A manifest is as much of Kubernetes' objects as is looked at here.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	Spec     struct {
		Replicas int
		Template struct {
			Spec struct {
				GracePeriod int `yaml:"terminationGracePeriodSeconds"`
				Containers  []struct {
					Ports []struct {
						Name string
						Port int `yaml:"containerPort"`
					}
					Lifecycle struct {
						PreStop struct{ Sleep struct{ Seconds int } } `yaml:"preStop"`
					}
				}
			}
		}
	}
}

// builtManifests builds a folder of manifests, which are checked on the way.
func builtManifests(t *testing.T, folder string) ([]manifest, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), deployTool(t, "manifests"), folder)
	var problem bytes.Buffer
	cmd.Stderr = &problem
	text, err := cmd.Output()
	if err != nil {
		return nil, errors.New(problem.String())
	}
	var list []manifest
	for in := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var m manifest
		if err := in.Decode(&m); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
}

const kubernetes = "../../deploy/kubernetes"

// The manifests are what an API server takes: each as its kind is published, all of them in accord, and the pod within the
// standard "restricted". Their settings are docent's.
func TestTheManifestsAreSound(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	c := config.Default()
	for _, s := range c.Settings() {
		known[s.Env()] = true
	}
	known[config.NodeSecretEnv] = true
	monitored := filepath.Join(t.TempDir(), "kubernetes")
	if err := errors.Join(os.CopyFS(monitored, os.DirFS(kubernetes)), os.WriteFile(filepath.Join(monitored, "kustomization.yaml"),
		[]byte("resources: [overlays/ingress]\ncomponents: [components/servicemonitor]\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	common := []string{"ConfigMap", "Namespace", "NetworkPolicy", "PodDisruptionBudget", "Service", "ServiceAccount", "StatefulSet"}
	for folder, more := range map[string][]string{kubernetes + "/base": nil, kubernetes + "/overlays/ingress": {"Ingress"},
		kubernetes + "/overlays/cluster": {"Ingress"},
		monitored:                        {"Ingress", "ServiceMonitor"}} {
		list, err := builtManifests(t, folder)
		if err != nil {
			t.Fatalf("%s: %v", folder, err)
		}
		var kinds []string
		for _, m := range list {
			kinds = append(kinds, m.Kind)
			switch m.Kind {
			case "ConfigMap":
				for name := range m.Data {
					if !known[strings.TrimSuffix(name, "_FILE")] {
						t.Errorf("%s: docent has no setting %s", folder, name)
					}
				}
			case "StatefulSet":
				pod := m.Spec.Template.Spec
				pause := pod.Containers[0].Lifecycle.PreStop.Sleep.Seconds
				replicas := 1
				if strings.HasSuffix(folder, "cluster") {
					replicas = 3
				}
				if least := int(c.DrainTimeout.Duration/time.Second) + pause; m.Spec.Replicas != replicas || pause == 0 || pod.GracePeriod <= least {
					t.Errorf("%s: %d pods, killed after %d seconds, of which stopping may take %d", folder, m.Spec.Replicas, pod.GracePeriod, least)
				}
			}
		}
		slices.Sort(kinds)
		if want := slices.Sorted(slices.Values(append(slices.Clone(common), more...))); !slices.Equal(kinds, want) {
			t.Errorf("%s has %v, not %v", folder, kinds, want)
		}
	}
}

// What would be wrong in a cluster is found without one.
func TestMistakesInManifestsAreFound(t *testing.T) {
	t.Parallel()
	for _, mistake := range []struct{ file, is, planted, says string }{
		{"base/statefulset.yaml", "replicas: 1", "replica: 1", `unknown field "spec.replica"`},
		{"base/statefulset.yaml", "replicas: 1", "replicas: one", "cannot unmarshal string"},
		{"base/statefulset.yaml", "memory: 1Gi", "memory: 1Gigabyte", "quantities must match"},
		{"base/statefulset.yaml", "        - name: docent\n          image: docent\n", "        - image: docent\n", "name"},
		{"base/statefulset.yaml", "            allowPrivilegeEscalation: false\n", "", "allowPrivilegeEscalation"},
		{"base/statefulset.yaml", "drop: [ALL]", "drop: [NET_RAW]", "unrestricted capabilities"},
		{"base/statefulset.yaml", "runAsNonRoot: true", "runAsNonRoot: false", "runAsNonRoot"},
		{"base/statefulset.yaml", "serviceName: docent", "serviceName: docnet", "Service docnet, which is not there"},
		{"base/service.yaml", "component: server", "component: srever", "selects no pod"},
		{"base/service.yaml", "targetPort: http", "targetPort: htttp", "no container has the port htttp"},
		{"base/networkpolicy.yaml", "- port: operator", "- port: operators", "no container has the port operators"},
		{"base/poddisruptionbudget.yaml", "maxUnavailable: 1", "maxUnavailabel: 1", "unknown field"},
		{"overlays/ingress/ingress.yaml", "pathType: Prefix", "pathType: Prefixed", "pathType"},
		{"overlays/ingress/ingress.yaml", "port: { name: http }", "port: { name: https }", "not there"},
		{"overlays/ingress/secrets.yaml", "name: docent\nspec", "name: docnet\nspec", "docnet"},
		{"components/servicemonitor/servicemonitor.yaml", "port: operator", "port: metrics", "has the port metrics"},
		{"overlays/cluster/nodes.yaml", "- name: nodes", "- name: node", "no container has the port nodes"},
		{"overlays/cluster/nodes.yaml", "maxSkew: 1", "maxskew: 1", "unknown field"},
	} {
		folder, overlay := filepath.Join(t.TempDir(), "kubernetes"), "overlays/ingress"
		if strings.HasPrefix(mistake.file, "overlays/cluster") {
			overlay = "overlays/cluster"
		}
		if err := errors.Join(os.CopyFS(folder, os.DirFS(kubernetes)), os.WriteFile(filepath.Join(folder, "kustomization.yaml"),
			[]byte("resources: ["+overlay+"]\ncomponents: [components/servicemonitor]\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(folder, filepath.FromSlash(mistake.file))
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		broken := strings.Replace(string(text), mistake.is, mistake.planted, 1)
		if broken == string(text) {
			t.Fatalf("%s does not say %q", mistake.file, mistake.is)
		}
		if err := os.WriteFile(file, []byte(broken), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := builtManifests(t, folder); err == nil || !strings.Contains(err.Error(), mistake.says) {
			t.Errorf("%s with %q: %v", mistake.file, mistake.planted, err)
		}
	}
}
