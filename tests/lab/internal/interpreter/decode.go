package interpreter

import (
	"fmt"
	"os"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// decodeExact decodes integers as int64, as every Kubernetes client does.
func decodeExact(data []byte, into *map[string]any) error { return utiljson.Unmarshal(data, into) }

// ReadObject reads one object from a YAML or JSON file.
func ReadObject(file string) (*unstructured.Unstructured, error) {
	data, err := readJSON(file)
	if err != nil {
		return nil, err
	}
	object, err := DecodeObject(data, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return object, nil
}

// ReadItems reads a list of status items from a YAML or JSON file.
func ReadItems(file string) ([]workv1alpha2.AggregatedStatusItem, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("failed to read status items: %w", err)
	}
	var items []workv1alpha2.AggregatedStatusItem
	if err := yaml.UnmarshalStrict(data, &items); err != nil {
		return nil, fmt.Errorf("failed to read status items in %s: %w", file, err)
	}
	return items, nil
}

func readJSON(file string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("failed to read a manifest: %w", err)
	}
	converted, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, fmt.Errorf("failed to read %s: %w", file, err)
	}
	return converted, nil
}
