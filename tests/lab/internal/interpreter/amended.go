package interpreter

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
)

// Amended is an interpreter behind a URL that gets more than Karmada's client can
// be made to send: parameters and fields that no client knows yet, as a later version
// might have them. A server on the way adds them to the client's own requests.
type Amended struct {
	webhook *Webhook
	target  *url.URL
	// One call at a time, so that what was sent belongs to it.
	mutex sync.Mutex
	sent  Sent
	err   error
}

// Sent is what was on the wire.
type Sent struct {
	// AcceptEncoding is what the client offered, in the request that was passed on.
	AcceptEncoding string `json:"acceptEncoding"`
	Query          string `json:"query"`
	// UnknownFields says how many were added.
	UnknownFields int `json:"unknownFields"`
	// ContentEncoding is of the answer, which is passed back untouched.
	ContentEncoding string `json:"contentEncoding"`
}

// places are where fields are added, in the order in which Karmada's client writes
// them: the envelope, the request, its kind, and the first aggregated status.
var places = []string{`{`, `"request":{`, `"kind":{`, `"aggregatedStatus":[{`}

const unknownField = `"nobody":{"knows":[1,null]},`

// NewAmended makes a client as NewWebhook does, with a server on its way to the
// URL that runs until the process ends.
func NewAmended(ctx context.Context, target string, caPEM []byte, timeoutSeconds *int32) (*Amended, error) {
	to, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("failed to read the URL: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(caPEM) {
		return nil, errors.New("the authority has no certificate")
	}
	amended := &Amended{target: to}
	address := net.ParseIP(to.Hostname())
	server := httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite:        amended.rewrite,
		ModifyResponse: amended.answered,
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots},
			// As Karmada's client would.
			ForceAttemptHTTP2: address != nil && address.IsLoopback(),
		},
	})
	server.EnableHTTP2 = true
	server.StartTLS()
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	amended.webhook, err = NewWebhook(ctx, server.URL+to.Path, own, timeoutSeconds)
	return amended, err
}

// Interpret makes one call over HTTPS and says what was sent.
func (a *Amended) Interpret(ctx context.Context, call *Call) (*Result, error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.sent, a.err = Sent{}, nil
	result, err := a.webhook.Interpret(ctx, call)
	if a.err != nil {
		return nil, a.err
	}
	if err != nil {
		return nil, err
	}
	result.Sent = &a.sent
	return result, nil
}

func (a *Amended) rewrite(request *httputil.ProxyRequest) {
	out := request.Out
	out.URL = &url.URL{
		Scheme: a.target.Scheme, Host: a.target.Host, Path: a.target.Path,
		RawQuery: "nobody=knows&" + request.In.URL.RawQuery + "&pretty=true",
	}
	out.Host = a.target.Host
	body, err := io.ReadAll(request.In.Body)
	if err != nil {
		a.err = fmt.Errorf("failed to read what the client sent: %w", err)
	}
	body, added := amend(body)
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	out.Header.Set("Content-Length", strconv.Itoa(len(body)))
	a.sent.AcceptEncoding = out.Header.Get("Accept-Encoding")
	a.sent.Query, a.sent.UnknownFields = out.URL.RawQuery, added
}

func (a *Amended) answered(response *http.Response) error {
	a.sent.ContentEncoding = response.Header.Get("Content-Encoding")
	return nil
}

// amend leaves every byte of the client's as it is.
func amend(body []byte) (amended []byte, added int) {
	rest := body
	for _, place := range places {
		before, after, found := bytes.Cut(rest, []byte(place))
		if !found {
			continue
		}
		amended = append(amended, before...)
		amended = append(amended, place...)
		amended = append(amended, unknownField...)
		rest = after
		added++
	}
	return append(amended, rest...), added
}
