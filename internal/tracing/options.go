package tracing

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// options is a Config with what the environment adds.
type options struct {
	url      *url.URL
	headers  http.Header
	compress bool
	timeout  time.Duration
	tls      *tls.Config // nil for the system's
	sampler  sdk.Sampler
	queue    int // spans
}

// options is nil if tracing is off.
func (c *Config) options() (*options, error) {
	if c.Getenv == nil {
		c.Getenv = os.Getenv
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if off, _ := strconv.ParseBool(c.Getenv("OTEL_SDK_DISABLED")); off {
		return nil, nil
	}
	where, whole := c.Endpoint, false
	if where == "" {
		if c.Getenv("OTEL_TRACES_EXPORTER") == "none" {
			return nil, nil
		}
		if where = c.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); where != "" {
			whole = true
		} else if where = c.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"); where == "" {
			return nil, nil
		}
	}
	at, err := Endpoint(where)
	if err != nil {
		return nil, fmt.Errorf("the endpoint of traces: %w", err)
	}
	if !whole && !strings.HasSuffix(at.Path, tracesPath) {
		at = at.JoinPath(tracesPath)
	}
	if p := c.variable("PROTOCOL"); p != "" && p != "http/protobuf" {
		c.Log.Warn("traces are sent by http/protobuf: OTEL_EXPORTER_OTLP_PROTOCOL asks for another protocol, "+
			"whose port takes none", "protocol", p)
	}
	o := &options{url: at, headers: http.Header{}, compress: c.variable("COMPRESSION") == "gzip", timeout: 10 * time.Second,
		queue: sdk.DefaultMaxQueueSize}
	if ms, err := strconv.Atoi(c.variable("TIMEOUT")); err == nil && ms > 0 {
		o.timeout = time.Duration(ms) * time.Millisecond
	}
	if n, err := strconv.Atoi(c.Getenv("OTEL_BSP_MAX_QUEUE_SIZE")); err == nil && n > 0 {
		o.queue = n
	}
	if err := o.setHeaders(cmp.Or(c.Headers, c.variable("HEADERS"))); err != nil {
		return nil, err
	}
	if o.tls, err = c.certificates(); err != nil {
		return nil, err
	}
	o.sampler, err = c.sampling()
	return o, err
}

const tracesPath = "/v1/traces"

// variable is what the environment says of the export of traces, or of all that is exported.
func (c *Config) variable(name string) string {
	return cmp.Or(c.Getenv("OTEL_EXPORTER_OTLP_TRACES_"+name), c.Getenv("OTEL_EXPORTER_OTLP_"+name))
}

// Endpoint reads the address of a collector.
func Endpoint(text string) (*url.URL, error) {
	at, err := url.Parse(text)
	switch {
	case err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https":
		return nil, errors.New("must be an address such as http://localhost:4318")
	case at.User != nil || at.RawQuery != "" || at.Fragment != "":
		return nil, errors.New("must hold neither a password nor a query: what lets you in goes into the headers")
	}
	return at, nil
}

// setHeaders reads name=value,name=value with values in percent encoding, as OpenTelemetry has them.
func (o *options) setHeaders(text string) error {
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil || strings.TrimSpace(name) == "" { // without the text, which is a secret
			return errors.New("the headers of traces must be name=value,name=value, with % and , of values in percent encoding")
		}
		o.headers.Set(strings.TrimSpace(name), value)
	}
	return nil
}

// certificates are what the environment has of them; nil for none.
func (c *Config) certificates() (*tls.Config, error) {
	roots, cert, key := c.variable("CERTIFICATE"), c.variable("CLIENT_CERTIFICATE"), c.variable("CLIENT_KEY")
	if roots == "" && cert == "" {
		return nil, nil
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if roots != "" {
		pem, err := os.ReadFile(roots)
		if err != nil {
			return nil, fmt.Errorf("read OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		if conf.RootCAs = x509.NewCertPool(); !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %s holds no certificate", roots)
		}
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("read OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: %w", err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return conf, nil
}

// sampling is the part of traces that is kept. A caller that is trusted decides for its own.
func (c *Config) sampling() (sdk.Sampler, error) {
	name, part := c.Getenv("OTEL_TRACES_SAMPLER"), 1.0
	if c.Sample != nil {
		name, part = "parentbased_traceidratio", *c.Sample
	} else if arg := c.Getenv("OTEL_TRACES_SAMPLER_ARG"); arg != "" {
		var err error
		if part, err = strconv.ParseFloat(arg, 64); err != nil {
			return nil, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG is %q: it must be a number from 0 to 1", arg)
		}
	}
	if !(part >= 0 && part <= 1) {
		return nil, fmt.Errorf("%v of all traces cannot be kept: it must be a number from 0 to 1", part)
	}
	switch name {
	case "always_on":
		return sdk.AlwaysSample(), nil
	case "always_off":
		return sdk.NeverSample(), nil
	case "traceidratio":
		return sdk.TraceIDRatioBased(part), nil
	case "parentbased_always_on", "":
		return sdk.ParentBased(sdk.AlwaysSample()), nil
	case "parentbased_always_off":
		return sdk.ParentBased(sdk.NeverSample()), nil
	case "parentbased_traceidratio":
		return sdk.ParentBased(sdk.TraceIDRatioBased(part)), nil
	}
	return nil, fmt.Errorf("OTEL_TRACES_SAMPLER is %q, which is not known: use parentbased_traceidratio", name)
}
