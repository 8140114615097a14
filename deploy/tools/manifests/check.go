package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	strict "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/openapi/openapitest"
	admission "k8s.io/pod-security-admission/api"
	podsecurity "k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

// A checker reads manifests and holds each to its type, to the API's published schema and, where it has pods, to the
// standard "restricted"; and all of them to one another.
type checker struct {
	serializer *strict.Serializer
	schemas    *jsonschema.Compiler
	evaluator  podsecurity.Evaluator
	seen       []runtime.Object
	monitors   []*serviceMonitor
	sets       []*appsv1.StatefulSet
	services   []*corev1.Service
	wrong      []error
}

// A serviceMonitor is as much of the Prometheus Operator's kind as is used here; more is refused.
type serviceMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector  metav1.LabelSelector `json:"selector"`
		Endpoints []struct {
			Port     string          `json:"port"`
			Path     string          `json:"path"`
			Interval metav1.Duration `json:"interval"`
		} `json:"endpoints"`
	} `json:"spec"`
}

func newChecker() (*checker, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, networkingv1.AddToScheme,
		policyv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	evaluator, err := podsecurity.NewEvaluator(podsecurity.DefaultChecks(), nil)
	if err != nil {
		return nil, err
	}
	c := &checker{evaluator: evaluator, schemas: jsonschema.NewCompiler(), serializer: strict.NewSerializerWithOptions(
		strict.DefaultMetaFactory, scheme, scheme, strict.SerializerOptions{Yaml: true, Strict: true})}
	published, err := openapitest.NewEmbeddedFileClient().Paths()
	if err != nil {
		return nil, err
	}
	for _, group := range []string{"api/v1", "apis/apps/v1"} {
		text, err := published[group].Schema(runtime.ContentTypeJSON)
		if err != nil {
			return nil, fmt.Errorf("the schema of %s: %w", group, err)
		}
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		if err := c.schemas.AddResource("https://kubernetes/"+group, document); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// definitions are the schemas of those kinds whose API publishes one here. Of the others the types alone say what is right.
var definitions = map[schema.GroupKind]string{
	{Kind: "Namespace"}:                  "api/v1#/components/schemas/io.k8s.api.core.v1.Namespace",
	{Kind: "ServiceAccount"}:             "api/v1#/components/schemas/io.k8s.api.core.v1.ServiceAccount",
	{Kind: "Service"}:                    "api/v1#/components/schemas/io.k8s.api.core.v1.Service",
	{Kind: "ConfigMap"}:                  "api/v1#/components/schemas/io.k8s.api.core.v1.ConfigMap",
	{Group: "apps", Kind: "StatefulSet"}: "apis/apps/v1#/components/schemas/io.k8s.api.apps.v1.StatefulSet",
}

func (c *checker) read(text []byte) error {
	object, kind, err := c.serializer.Decode(text, nil, nil)
	if runtime.IsNotRegisteredError(err) && kind.Kind == "ServiceMonitor" {
		monitor := new(serviceMonitor)
		c.monitors = append(c.monitors, monitor)
		return yaml.UnmarshalStrict(text, monitor)
	}
	if err != nil {
		return err
	}
	if at, ok := definitions[kind.GroupKind()]; ok {
		if err := c.held(at, text); err != nil {
			return err
		}
	}
	switch o := object.(type) {
	case *appsv1.StatefulSet:
		err = c.pods(&o.Spec.Template)
	case *networkingv1.Ingress:
		for _, rule := range o.Spec.Rules {
			for _, path := range rule.HTTP.Paths {
				if path.PathType == nil || !slices.Contains([]networkingv1.PathType{networkingv1.PathTypeExact,
					networkingv1.PathTypePrefix, networkingv1.PathTypeImplementationSpecific}, *path.PathType) {
					err = fmt.Errorf("the path %s: pathType has to be Exact, Prefix or ImplementationSpecific", path.Path)
				}
			}
		}
	}
	c.seen = append(c.seen, object)
	return err
}

// held holds a manifest to a published schema.
func (c *checker) held(at string, text []byte) error {
	definition, err := c.schemas.Compile("https://kubernetes/" + at)
	if err != nil {
		return err
	}
	asJSON, err := yaml.YAMLToJSON(text)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		return err
	}
	return definition.Validate(value)
}

// pods holds a template of pods to the Pod Security Standard "restricted", as the API server's admission does.
func (c *checker) pods(template *corev1.PodTemplateSpec) error {
	level := admission.LevelVersion{Level: admission.LevelRestricted, Version: admission.LatestVersion()}
	result := podsecurity.AggregateCheckResults(c.evaluator.EvaluatePod(level, &template.ObjectMeta, &template.Spec))
	if !result.Allowed {
		return errors.New("Pod Security restricted: " + result.ForbiddenDetail())
	}
	return nil
}

// together holds the manifests to one another: what one names, another one has.
func (c *checker) together() error {
	has := map[string]bool{}
	for _, o := range c.seen {
		has[named(o)] = true
		switch o := o.(type) {
		case *appsv1.StatefulSet:
			c.sets = append(c.sets, o)
		case *corev1.Service:
			c.services = append(c.services, o)
		}
	}
	for _, o := range c.seen {
		switch o := o.(type) {
		case *appsv1.StatefulSet:
			c.selected(named(o), o.Spec.Selector)
			for _, ref := range references(o) {
				if !has[ref] {
					c.complain("%s names %s, which is not there", named(o), ref)
				}
			}
		case *corev1.Service:
			ports := c.selected(named(o), &metav1.LabelSelector{MatchLabels: o.Spec.Selector})
			for _, p := range o.Spec.Ports {
				c.port(named(o), ports, p.TargetPort)
			}
		case *networkingv1.NetworkPolicy:
			ports := c.selected(named(o), &o.Spec.PodSelector)
			for _, rule := range o.Spec.Ingress {
				for _, p := range rule.Ports {
					c.port(named(o), ports, *p.Port)
				}
			}
		case *policyv1.PodDisruptionBudget:
			c.selected(named(o), o.Spec.Selector)
		case *networkingv1.Ingress:
			c.leads(o)
		}
	}
	c.monitored()
	return errors.Join(c.wrong...)
}

func (c *checker) complain(format string, args ...any) {
	c.wrong = append(c.wrong, fmt.Errorf(format, args...))
}

// selected is the ports of the pods that a selector selects; it has to select some.
func (c *checker) selected(who string, selector *metav1.LabelSelector) (ports []corev1.ContainerPort) {
	match, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		c.complain("%s: %w", who, err)
		return nil
	}
	found := false
	for _, set := range c.sets {
		if match.Matches(labels.Set(set.Spec.Template.Labels)) {
			found = true
			for _, container := range set.Spec.Template.Spec.Containers {
				ports = append(ports, container.Ports...)
			}
		}
	}
	if !found {
		c.complain("%s selects no pod", who)
	}
	return ports
}

// port holds one port to those that containers have.
func (c *checker) port(who string, ports []corev1.ContainerPort, p intstr.IntOrString) {
	if !slices.ContainsFunc(ports, func(has corev1.ContainerPort) bool {
		return p.StrVal == has.Name && p.Type == intstr.String || p.IntVal == has.ContainerPort && p.Type == intstr.Int
	}) {
		c.complain("%s: no container has the port %s", who, p.String())
	}
}

// leads holds the paths of an ingress to the services.
func (c *checker) leads(o *networkingv1.Ingress) {
	for _, rule := range o.Spec.Rules {
		for _, path := range rule.HTTP.Paths {
			to := path.Backend.Service
			if to == nil || !slices.ContainsFunc(c.services, func(s *corev1.Service) bool {
				return s.Name == to.Name && slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool {
					return p.Name == to.Port.Name && p.Name != "" || p.Port == to.Port.Number
				})
			}) {
				c.complain("%s: the path %s leads to a service or a port that is not there", named(o), path.Path)
			}
		}
	}
}

// monitored holds what is scraped to the services.
func (c *checker) monitored() {
	for _, monitor := range c.monitors {
		match, err := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector)
		if err != nil {
			c.complain("the monitor %s: %w", monitor.Name, err)
			continue
		}
		for _, endpoint := range monitor.Spec.Endpoints {
			if !slices.ContainsFunc(c.services, func(s *corev1.Service) bool {
				return match.Matches(labels.Set(s.Labels)) &&
					slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == endpoint.Port })
			}) {
				c.complain("the monitor %s: no service that it selects has the port %s", monitor.Name, endpoint.Port)
			}
		}
	}
}

// named is a kind and a name.
func named(o runtime.Object) string {
	meta, _ := o.(metav1.Object)
	return o.GetObjectKind().GroupVersionKind().Kind + " " + meta.GetName()
}

// references are what a set's pods need, but for secrets, which are the operator's to make.
func references(set *appsv1.StatefulSet) (refs []string) {
	spec := set.Spec.Template.Spec
	refs = append(refs, "ServiceAccount "+spec.ServiceAccountName, "Service "+set.Spec.ServiceName)
	for _, container := range spec.Containers {
		for _, from := range container.EnvFrom {
			if from.ConfigMapRef != nil {
				refs = append(refs, "ConfigMap "+from.ConfigMapRef.Name)
			}
		}
	}
	return refs
}
