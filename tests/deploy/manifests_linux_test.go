package deploy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	return built[manifest](t, folder)
}

// built are the manifests that the arguments build, of a folder for kustomize or of a chart, as values of a type.
func built[T any](t *testing.T, args ...string) ([]T, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), deployTool(t, "manifests"), args...)
	var problem bytes.Buffer
	cmd.Stderr = &problem
	text, err := cmd.Output()
	if err != nil {
		return nil, errors.New(problem.String())
	}
	var list []T
	for in := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var m T
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

// The Helm chart makes what kustomize makes of the same files.
func TestTheChartMakesWhatTheManifestsMake(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "../../scripts/release-chart", folder, "1.2.3", "registry.example.com/docent").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	chart := filepath.Join(folder, "docent")
	monitored := filepath.Join(t.TempDir(), "kubernetes")
	if err := errors.Join(os.CopyFS(monitored, os.DirFS(kubernetes)), os.WriteFile(filepath.Join(monitored, "kustomization.yaml"),
		[]byte("resources: [base]\ncomponents: [components/servicemonitor]\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	const ingress = "host: docent.example.com\nsecret: docent-secrets\n"
	for folder, values := range map[string]string{
		kubernetes + "/base":             "",
		kubernetes + "/overlays/ingress": ingress + "settings: {DOCENT_CATALOG_DSN_FILE: /run/secrets/docent/catalog_dsn}\n",
		kubernetes + "/overlays/cluster": ingress + "nodes: 3\n",
		monitored:                        "serviceMonitor: true\n",
	} {
		file := filepath.Join(t.TempDir(), "values.yaml")
		if err := os.WriteFile(file, []byte("image: {repository: docent, tag: latest}\n"+values), 0o644); err != nil {
			t.Fatal(err)
		}
		byHelm, err := built[map[string]any](t, chart, file)
		if err != nil {
			t.Fatal(err)
		}
		byKustomize, err := built[map[string]any](t, folder)
		if err != nil {
			t.Fatal(err)
		}
		want, got := inAccord(t, byKustomize), inAccord(t, byHelm)
		for name := range want {
			if want[name] != got[name] && name != "Namespace/docent" { // which is made by helm install --create-namespace
				t.Errorf("%s: %s is\n%s\nand of the chart\n%s", folder, name, want[name], got[name])
			}
		}
		if len(got) != len(want)-1 {
			t.Errorf("%s: the chart makes %d objects, not %d", folder, len(got), len(want)-1)
		}
	}

	// What else values change.
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte("host: docs.acme.test\ningress: {className: traefik, tlsSecret: own}\ningressNamespace: traefik\n"+
		"storage: {size: 50Gi, className: fast}\nresources: {limits: {memory: 4Gi}}\nsettings: {DOCENT_MAX_STREAMS: 5000}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	list, err := built[map[string]any](t, chart, file)
	if err != nil {
		t.Fatal(err)
	}
	all := fmt.Sprint(inAccord(t, list))
	for _, want := range []string{"DOCENT_PUBLIC_URL: https://docs.acme.test", `DOCENT_MAX_STREAMS: "5000"`, "ingressClassName: traefik", "secretName: own",
		"kubernetes.io/metadata.name: traefik", "storage: 50Gi", "storageClassName: fast", "memory: 4Gi", "cpu: 100m", "image: registry.example.com/docent:1.2.3"} {
		if !strings.Contains(all, want) {
			t.Errorf("there is no %s in\n%s", want, all)
		}
	}
}

// Several nodes without the Secret that has their database are refused: their pods would not start.
func TestTheChartRefusesNodesWithoutASecret(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "../../scripts/release-chart", folder, "1.2.3", "registry.example.com/docent").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	file := filepath.Join(folder, "values.yaml")
	if err := os.WriteFile(file, []byte("nodes: 3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := built[map[string]any](t, filepath.Join(folder, "docent"), file); err == nil || !strings.Contains(err.Error(), "more than one needs secret") {
		t.Errorf("nodes without a secret: %v", err)
	}
}

// inAccord are manifests by kind and name, without what the two ways do in their own manner: the namespace, the sum in a name of
// settings, and the order of ports and of folders.
func inAccord(t *testing.T, list []map[string]any) map[string]string {
	t.Helper()
	sum := regexp.MustCompile(`docent-settings-\w+`)
	byName := map[string]string{}
	for _, m := range list {
		meta := m["metadata"].(map[string]any)
		delete(meta, "namespace")
		sorted(m)
		text, err := yaml.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		byName[sum.ReplaceAllString(fmt.Sprintf("%v/%v", m["kind"], meta["name"]), "docent-settings")] = sum.ReplaceAllString(string(text), "docent-settings")
	}
	return byName
}

// sorted brings the lists in a value whose entries have names into the order of these.
func sorted(value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, each := range v {
			sorted(each)
		}
	case []any:
		for _, each := range v {
			sorted(each)
		}
		slices.SortStableFunc(v, func(a, b any) int {
			x, _ := a.(map[string]any)
			y, _ := b.(map[string]any)
			return strings.Compare(fmt.Sprint(x["name"]), fmt.Sprint(y["name"]))
		})
	}
}
