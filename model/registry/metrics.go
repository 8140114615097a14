package registry

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"docent/model/remote"
)

func desc(name string, labels []string, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	byEndpoint = []string{"endpoint", "models"}
	byModel    = []string{"model"}
	byKind     = []string{"model", "kind"}

	endpointOpen = desc("docent_model_endpoint_open", byEndpoint,
		"1 while the circuit of an endpoint is open because it failed repeatedly, 0.5 while it is half open and one call tries it.")
	endpointTrip = desc("docent_model_endpoint_opened_total", byEndpoint, "How often the circuit of an endpoint opened.")
	calls        = desc("docent_model_calls_total", byModel, "Answers and turns of conversations asked of a model.")
	failures     = desc("docent_model_failures_total", byModel, "Of these, those that failed.")
	requests     = desc("docent_model_requests_total", byModel, "Requests to a model's endpoint, repeated ones included.")
	tokensUsed   = desc("docent_model_tokens_total", byKind,
		"Tokens by kind: prompt (cached ones included), cached, completion.")
	fallbacks = desc("docent_model_fallbacks_total", byModel,
		"Answers that the built-in model gave because this model could not; without a name those of models that are not configured any more.")
	spent = desc("docent_model_cost_dollars_total", byModel, "What the tokens cost by the configured prices.")
)

// A Use is what a model that is reached over HTTP was used for since the start.
type Use struct {
	remote.Use
	Fallbacks int64 // answers that the built-in model gave in its place
}

// Uses lists the models that are reached over HTTP with what they were used for, by name.
func (r *Registry) Uses() []Use {
	var list []Use
	fallbacks := r.now.Load().fallbacks
	for _, u := range r.remotes.Uses() {
		if n := fallbacks[u.Model]; n != nil {
			list = append(list, Use{u, n.Load()})
		}
	}
	return list
}

// Endpoints lists the addresses of all models that are reached over HTTP, by the models' names.
func (r *Registry) Endpoints() []remote.Endpoint { return r.remotes.Endpoints() }

// Count makes the metrics include models that answer nobody, such as those of vectors.
func (r *Registry) Count(s *remote.Set) { r.counted = append(r.counted, s) }

// endpoints are those of all that is counted.
func (r *Registry) endpoints() (list []remote.Endpoint) {
	for _, s := range r.counted {
		list = append(list, s.Endpoints()...)
	}
	return list
}

// uses are those of all that is counted.
func (r *Registry) uses() []Use {
	list := r.Uses()
	for _, s := range r.counted[1:] {
		for _, u := range s.Uses() {
			list = append(list, Use{Use: u})
		}
	}
	return list
}

// Describe and Collect show endpoints and use as metrics.
func (r *Registry) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		endpointOpen, endpointTrip, calls, failures, requests, fallbacks, tokensUsed, spent,
	} {
		ch <- d
	}
	for _, s := range r.counted {
		s.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (r *Registry) Collect(ch chan<- prometheus.Metric) {
	for _, e := range r.endpoints() {
		models := strings.Join(e.Models, ",")
		open := map[string]float64{remote.Open: 1, remote.HalfOpen: 0.5}[e.State]
		ch <- prometheus.MustNewConstMetric(endpointOpen, prometheus.GaugeValue, open, e.Address, models)
		ch <- prometheus.MustNewConstMetric(endpointTrip, prometheus.CounterValue, float64(e.Opened), e.Address, models)
	}
	for _, u := range r.uses() {
		count := func(d *prometheus.Desc, v float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, append([]string{u.Model}, labels...)...)
		}
		count(calls, float64(u.Calls))
		count(failures, float64(u.Failures))
		count(requests, float64(u.Tries))
		count(fallbacks, float64(u.Fallbacks))
		count(tokensUsed, float64(u.Tokens.Prompt), "prompt")
		count(tokensUsed, float64(u.Tokens.Cached), "cached")
		count(tokensUsed, float64(u.Tokens.Completion), "completion")
		count(spent, float64(u.Cost)/1e6)
	}
	for _, s := range r.counted {
		s.Collect(ch)
	}
	if n := r.now.Load().fallbacks[""].Load(); n > 0 {
		ch <- prometheus.MustNewConstMetric(fallbacks, prometheus.CounterValue, float64(n), "")
	}
}
