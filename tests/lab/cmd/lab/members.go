package main

import (
	"context"
	"encoding/base64"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"popcell.dev/lab/cmd/lab/internal/spec"
)

var (
	clusterKind   = schema.GroupVersionKind{Group: "cluster.karmada.io", Version: "v1alpha1", Kind: "Cluster"}
	namespaceKind = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
)

// join makes the plane a member of the hub and waits until Karmada calls it
// ready and knows every kind that it serves.
func (l *lab) join(ctx context.Context, hub, p *plane, crds []*unstructured.Unstructured) error {
	client, err := l.client(hub)
	if err != nil {
		return err
	}
	if p.member.Mode == spec.Pull {
		err = l.joinPull(ctx, client, p)
	} else {
		err = l.joinPush(ctx, client, p)
	}
	if err != nil {
		return err
	}
	err = client.await(ctx, clusterKind, p.name, func(cluster *unstructured.Unstructured) error {
		if err := hasCondition(cluster, "Ready"); err != nil {
			return err
		}
		return serves(cluster, crds)
	})
	if err != nil {
		return err
	}
	l.events.step("%s is a member (%s)", p.name, p.member.Mode)
	return nil
}

// joinPush writes what karmadactl join would: a Secret with a bearer token and
// the Cluster that names it.
func (l *lab) joinPush(ctx context.Context, client *client, p *plane) error {
	secret := object("v1", "Secret", clusterNamespace, p.name, nil)
	secret.Object["data"] = map[string]any{
		"token":    base64.StdEncoding.EncodeToString([]byte(l.pushToken)),
		"caBundle": base64.StdEncoding.EncodeToString(l.authority.PEM()),
	}
	if err := client.apply(ctx, secret); err != nil {
		return err
	}
	id, err := l.clusterID(ctx, p)
	if err != nil {
		return err
	}
	reference := map[string]any{"namespace": clusterNamespace, "name": p.name}
	cluster := object(clusterKind.GroupVersion().String(), clusterKind.Kind, "", p.name, map[string]any{
		"syncMode":              string(spec.Push),
		"apiEndpoint":           l.url(p.port),
		"id":                    id,
		"secretRef":             reference,
		"impersonatorSecretRef": reference,
	})
	cluster.SetLabels(p.member.Labels)
	return client.apply(ctx, cluster)
}

// joinPull starts the agent, which makes the Cluster; it has no flag for labels.
func (l *lab) joinPull(ctx context.Context, client *client, p *plane) error {
	if err := l.start(ctx, p.process("karmada-agent")); err != nil {
		return err
	}
	exists := func(*unstructured.Unstructured) error { return nil }
	if err := client.await(ctx, clusterKind, p.name, exists); err != nil {
		return err
	}
	labels := &unstructured.Unstructured{}
	labels.SetGroupVersionKind(clusterKind)
	labels.SetName(p.name)
	labels.SetLabels(p.member.Labels)
	return client.apply(ctx, labels)
}

// clusterID is the uid of kube-system, as karmadactl join takes it.
func (l *lab) clusterID(ctx context.Context, p *plane) (string, error) {
	client, err := l.client(p)
	if err != nil {
		return "", err
	}
	exists := func(*unstructured.Unstructured) error { return nil }
	if err := client.await(ctx, namespaceKind, metav1.NamespaceSystem, exists); err != nil {
		return "", err
	}
	namespace, err := client.at(namespaceKind, "").Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("failed to read the identity of %s: %w", p.name, err)
	}
	return string(namespace.GetUID()), nil
}

// serves checks that Karmada has seen each kind in the member: the scheduler
// filters clusters by it.
func serves(cluster *unstructured.Unstructured, crds []*unstructured.Unstructured) error {
	enablements, _, err := unstructured.NestedSlice(cluster.Object, "status", "apiEnablements")
	if err != nil {
		return err
	}
	known := map[schema.GroupVersionKind]bool{}
	for _, each := range enablements {
		enablement, _ := each.(map[string]any)
		version, _ := enablement["groupVersion"].(string)
		parsed, err := schema.ParseGroupVersion(version)
		if err != nil {
			return err
		}
		resources, _ := enablement["resources"].([]any)
		for _, resource := range resources {
			fields, _ := resource.(map[string]any)
			kind, _ := fields["kind"].(string)
			known[parsed.WithKind(kind)] = true
		}
	}
	for _, crd := range crds {
		for _, kind := range servedKinds(crd) {
			if !known[kind] {
				return fmt.Errorf("Karmada has not seen %s there yet", kind)
			}
		}
	}
	return nil
}
