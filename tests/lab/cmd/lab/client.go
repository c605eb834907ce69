package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const (
	fieldManager = "popcell-lab"
	pollInterval = 100 * time.Millisecond
)

// probe asks a program once whether it serves.
type probe = func(context.Context) error

// healthy asks the URL, with the administrator's certificate, for a 200.
func (l *lab) healthy(url string) probe {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := l.http.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		_, _ = io.Copy(io.Discard, response.Body)
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", url, response.Status)
		}
		return nil
	}
}

// newHTTPClient trusts the lab's authority and shows the administrator's
// certificate.
func (l *lab) newHTTPClient() (*http.Client, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(l.authority.PEM()) {
		return nil, errors.New("failed to read the certificate of the authority")
	}
	certificate, err := tls.X509KeyPair(l.admin.Certificate, l.admin.Key)
	if err != nil {
		return nil, fmt.Errorf("failed to read the administrator's certificate: %w", err)
	}
	return &http.Client{Transport: &http.Transport{
		// A frozen program must not hold an idle connection that later probes reuse.
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}},
	}}, nil
}

// client speaks to one plane as administrator.
type client struct{ dynamic dynamic.Interface }

func (l *lab) client(p *plane) (*client, error) {
	config := &rest.Config{
		Host: l.url(p.port),
		TLSClientConfig: rest.TLSClientConfig{
			CAData: l.authority.PEM(), CertData: l.admin.Certificate, KeyData: l.admin.Key,
		},
		QPS: -1,
	}
	made, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("failed to make a client for %s: %w", p.name, err)
	}
	return &client{made}, nil
}

// at is the collection of the kind. Every kind that the lab touches has the
// regular plural of its name.
func (c *client) at(kind schema.GroupVersionKind, namespace string) dynamic.ResourceInterface {
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	if namespace == "" {
		return c.dynamic.Resource(resource)
	}
	return c.dynamic.Resource(resource).Namespace(namespace)
}

// apply applies the object on the server and owns what it says.
func (c *client) apply(ctx context.Context, object *unstructured.Unstructured) error {
	_, err := c.at(object.GroupVersionKind(), object.GetNamespace()).Apply(ctx, object.GetName(), object,
		metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err != nil {
		return fmt.Errorf("failed to apply %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// await reads the object until done says nil. What done last said is in the
// error when the context ends first.
func (c *client) await(
	ctx context.Context, kind schema.GroupVersionKind, name string, done func(*unstructured.Unstructured) error,
) error {
	var last error
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		object, err := c.at(kind, "").Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			err = done(object)
		}
		if err == nil {
			return nil
		}
		// The request that the end cut off says less than the one before it.
		if ctx.Err() == nil || last == nil {
			last = err
		}
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			return fmt.Errorf("failed to read %s %s: %w", kind.Kind, name, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s %s did not become ready: %w (%w)", kind.Kind, name, last, context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

// hasCondition checks status.conditions for a type that is True.
func hasCondition(object *unstructured.Unstructured, wanted string) error {
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil {
		return err
	}
	for _, each := range conditions {
		condition, ok := each.(map[string]any)
		if !ok || condition["type"] != wanted {
			continue
		}
		if condition["status"] == "True" {
			return nil
		}
		return fmt.Errorf("%s is %v: %v %v", wanted, condition["status"], condition["reason"], condition["message"])
	}
	return fmt.Errorf("there is no condition %s yet", wanted)
}

// readObjects reads every YAML document of a file.
func readObjects(file string) ([]*unstructured.Unstructured, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("failed to read manifests: %w", err)
	}
	objects, err := decodeObjects(data)
	if err != nil {
		return nil, fmt.Errorf("failed to read manifests in %s: %w", file, err)
	}
	return objects, nil
}

func decodeObjects(data []byte) ([]*unstructured.Unstructured, error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(object.Object) == 0 {
			continue
		}
		if object.GetKind() == "" || object.GetAPIVersion() == "" || object.GetName() == "" {
			return nil, errors.New("a document lacks apiVersion, kind or metadata.name")
		}
		objects = append(objects, object)
	}
}
