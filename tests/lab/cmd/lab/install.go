package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	systemNamespace  = "karmada-system"
	clusterNamespace = "karmada-cluster"
	aggregatedName   = "karmada-aggregated-apiserver"

	// What labbuild stages beside the programs.
	stagedCRDs    = "karmada-crds"
	stagedWebhook = "karmada-webhook-configuration.yaml"

	// upstreamWebhook is the address in Karmada's own webhook configuration.
	upstreamWebhook = "https://karmada-webhook.karmada-system.svc:443"
	upstreamCA      = "{{caBundle}}"
)

var apiServiceKind = schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}

// installKarmada makes an API server a Karmada one: namespaces, definitions, the
// aggregated API and the admission webhooks.
func (l *lab) installKarmada(ctx context.Context, hub *plane, crds []*unstructured.Unstructured) error {
	client, err := l.client(hub)
	if err != nil {
		return err
	}
	for _, name := range []string{systemNamespace, clusterNamespace} {
		if err := client.apply(ctx, object("v1", "Namespace", "", name, nil)); err != nil {
			return err
		}
	}
	karmadaCRDs, err := readCRDs([]string{filepath.Join(l.spec.Bin, stagedCRDs)})
	if err != nil {
		return fmt.Errorf("%w; build the lab again", err)
	}
	if err := l.installCRDs(ctx, hub, append(karmadaCRDs, crds...)); err != nil {
		return err
	}
	l.events.step("hub serves %d custom resources", len(karmadaCRDs)+len(crds))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return l.installAggregatedAPI(ctx, client) })
	group.Go(func() error { return l.installWebhook(ctx, client) })
	return group.Wait()
}

func (l *lab) installAggregatedAPI(ctx context.Context, client *client) error {
	if err := l.start(ctx, aggregatedName); err != nil {
		return err
	}
	service := object("v1", "Service", systemNamespace, aggregatedName, map[string]any{
		"type": "ExternalName", "externalName": l.address,
	})
	if err := client.apply(ctx, service); err != nil {
		return err
	}
	const name = "v1alpha1.cluster.karmada.io"
	registration := object("apiregistration.k8s.io/v1", "APIService", "", name, map[string]any{
		"group":                "cluster.karmada.io",
		"version":              "v1alpha1",
		"groupPriorityMinimum": int64(2000),
		"versionPriority":      int64(10),
		"caBundle":             base64.StdEncoding.EncodeToString(l.authority.PEM()),
		"service": map[string]any{
			"namespace": systemNamespace, "name": aggregatedName, "port": int64(portAggregated),
		},
	})
	if err := client.apply(ctx, registration); err != nil {
		return err
	}
	if err := client.await(ctx, apiServiceKind, name, func(live *unstructured.Unstructured) error {
		return hasCondition(live, "Available")
	}); err != nil {
		return err
	}
	l.events.step("hub serves clusters")
	return nil
}

func (l *lab) installWebhook(ctx context.Context, client *client) error {
	if err := l.start(ctx, "karmada-webhook"); err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(l.spec.Bin, stagedWebhook))
	if err != nil {
		return fmt.Errorf("failed to read Karmada's webhook configuration: %w; build the lab again", err)
	}
	data = bytes.ReplaceAll(data, []byte(upstreamWebhook), []byte(l.url(portKarmadaWebhook)))
	ca := base64.StdEncoding.EncodeToString(l.authority.PEM())
	data = bytes.ReplaceAll(data, []byte(upstreamCA), []byte(ca))
	configurations, err := decodeObjects(data)
	if err != nil {
		return fmt.Errorf("failed to read Karmada's webhook configuration: %w", err)
	}
	for _, configuration := range configurations {
		if err := client.apply(ctx, configuration); err != nil {
			return err
		}
	}
	l.events.step("hub admits through karmada-webhook")
	return nil
}

// object makes an object with a spec.
func object(apiVersion, kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	made.SetName(name)
	made.SetNamespace(namespace)
	if spec != nil {
		made.Object["spec"] = spec
	}
	return made
}
