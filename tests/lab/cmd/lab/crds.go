package main

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var crdKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// readCRDs reads the CustomResourceDefinitions of every file below the
// directories. Another kind is an error: the lab would not know where it belongs.
func readCRDs(directories []string) ([]*unstructured.Unstructured, error) {
	var crds []*unstructured.Unstructured
	for _, directory := range directories {
		found, err := crdsBelow(directory)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("there is no CustomResourceDefinition below %s", directory)
		}
		crds = append(crds, found...)
	}
	return crds, nil
}

func crdsBelow(directory string) ([]*unstructured.Unstructured, error) {
	var crds []*unstructured.Unstructured
	err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("failed to look for CustomResourceDefinitions: %w", err)
		}
		if entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) ||
			strings.HasPrefix(entry.Name(), "kustomization.") {
			return nil
		}
		objects, err := readObjects(path)
		if err != nil {
			return err
		}
		for _, object := range objects {
			if object.GroupVersionKind() != crdKind {
				return fmt.Errorf("%s holds a %s; only CustomResourceDefinitions can be applied to every plane", path, object.GetKind())
			}
		}
		crds = append(crds, objects...)
		return nil
	})
	return crds, err
}

// installCRDs applies the definitions and waits until each is served and in
// discovery, which is what controllers look at when they start.
func (l *lab) installCRDs(ctx context.Context, p *plane, crds []*unstructured.Unstructured) error {
	client, err := l.client(p)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for _, crd := range crds {
		group.Go(func() error {
			if err := client.apply(ctx, crd); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			return client.await(ctx, crdKind, crd.GetName(), func(live *unstructured.Unstructured) error {
				if err := hasCondition(live, "Established"); err != nil {
					return err
				}
				return l.discovered(ctx, p, live)
			})
		})
	}
	return group.Wait()
}

// discovered asks for the discovery document of every served version.
func (l *lab) discovered(ctx context.Context, p *plane, crd *unstructured.Unstructured) error {
	for _, kind := range servedKinds(crd) {
		url := fmt.Sprintf("%s/apis/%s/%s", l.url(p.port), kind.Group, kind.Version)
		if err := l.healthy(url)(ctx); err != nil {
			return err
		}
	}
	return nil
}

// servedKinds lists what a CustomResourceDefinition serves.
func servedKinds(crd *unstructured.Unstructured) []schema.GroupVersionKind {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	var kinds []schema.GroupVersionKind
	for _, each := range versions {
		version, ok := each.(map[string]any)
		if !ok || version["served"] != true {
			continue
		}
		if name, ok := version["name"].(string); ok {
			kinds = append(kinds, schema.GroupVersionKind{Group: group, Version: name, Kind: kind})
		}
	}
	return kinds
}
