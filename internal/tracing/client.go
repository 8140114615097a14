package tracing

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"docent/internal/backoff"
)

// A client brings spans to a collector by OTLP over HTTP, in protobuf. OpenTelemetry's own links the whole of gRPC for
// the type of one message, whose bytes are those of tracepb.TracesData: decision 0040.
type client struct {
	url     *url.URL
	http    *http.Client
	options *options
	pause   func(n int) time.Duration
}

func newClient(o *options) (*client, error) {
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("the program's HTTP transport was replaced")
	}
	transport = transport.Clone()
	transport.TLSClientConfig, transport.MaxIdleConnsPerHost = o.tls, 1
	return &client{url: o.url, options: o, pause: backoff.Exponential(500*time.Millisecond, 5*time.Second),
		http: &http.Client{Transport: transport, // what the headers let in is not passed on to other addresses
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// Start is a part of otlptrace.Client.
func (c *client) Start(context.Context) error { return nil }

// Stop is a part of otlptrace.Client.
func (c *client) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// tries is how often a batch is offered to a collector that says to come again.
const tries = 3

// UploadTraces sends a batch. What the protocol says may be tried again is.
func (c *client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return fmt.Errorf("encode the spans: %w", err)
	}
	if c.options.compress {
		var small bytes.Buffer
		w := gzip.NewWriter(&small)
		_, _ = w.Write(body) // a buffer takes everything
		_ = w.Close()
		body = small.Bytes()
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.timeout)
	defer cancel()
	for n := 1; ; n++ {
		after, err := c.post(ctx, body)
		if err == nil || after < 0 || n == tries || backoff.Sleep(ctx, max(after, c.pause(n))) != nil {
			return err
		}
	}
}

// post offers a batch once. If it failed, after is how long to wait at least before it is offered again; negative
// if that would not help.
func (c *client) post(ctx context.Context, body []byte) (after time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url.String(), bytes.NewReader(body))
	if err != nil {
		return -1, fmt.Errorf("make the request: %w", err)
	}
	req.Header = c.options.headers.Clone()
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("User-Agent", "Docent")
	if c.options.compress {
		req.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // what it says beside its status is worth no failure
	switch code := resp.StatusCode; {
	case code >= 200 && code < 300:
		return -1, rejected(answer)
	case code == http.StatusTooManyRequests, code == http.StatusBadGateway, code == http.StatusServiceUnavailable,
		code == http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return time.Duration(min(max(seconds, 0), 60)) * time.Second, fmt.Errorf("%s answers %s", c.url.Redacted(), resp.Status)
	}
	return -1, fmt.Errorf("%s answers %s", c.url.Redacted(), resp.Status)
}

// rejected reads what a collector says of spans that it did not take, although it answered well:
// ExportTraceServiceResponse.partial_success.
func rejected(answer []byte) error {
	partial := field(answer, 1)
	if n, _ := protowire.ConsumeVarint(field(partial, 1)); n > 0 {
		return fmt.Errorf("the collector rejected %d spans: %.200q", n, field(partial, 2))
	}
	return nil
}

// field is the value of a field of a message; nil if the message has none.
func field(message []byte, number protowire.Number) []byte {
	for len(message) > 0 {
		found, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil
		}
		message = message[n:]
		n = protowire.ConsumeFieldValue(found, kind, message)
		if n < 0 {
			return nil
		}
		if found == number {
			if kind == protowire.BytesType {
				value, _ := protowire.ConsumeBytes(message)
				return value
			}
			return message[:n]
		}
		message = message[n:]
	}
	return nil
}
