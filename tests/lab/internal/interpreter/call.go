// Package interpreter calls resource interpreters exactly as Karmada does, with
// Karmada's own code and without an API server: a webhook through Karmada's
// webhook client, or Lua customizations in this process.
//
// Invariant: integers stay exact. Objects are decoded as Karmada decodes them,
// and what a call answers is passed on as it is.
package interpreter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
)

// Operations are the eight that Karmada calls, in the order of a life cycle.
var Operations = []configv1alpha1.InterpreterOperation{
	configv1alpha1.InterpreterOperationInterpretReplica,
	configv1alpha1.InterpreterOperationInterpretComponent,
	configv1alpha1.InterpreterOperationReviseReplica,
	configv1alpha1.InterpreterOperationRetain,
	configv1alpha1.InterpreterOperationAggregateStatus,
	configv1alpha1.InterpreterOperationInterpretStatus,
	configv1alpha1.InterpreterOperationInterpretHealth,
	configv1alpha1.InterpreterOperationInterpretDependency,
}

// ErrNotInterpreted is the answer where nothing is registered for the kind and
// operation.
var ErrNotInterpreted = errors.New("no interpreter for this kind and operation")

// Call is one operation on one object.
type Call struct {
	Operation configv1alpha1.InterpreterOperation
	Object    *unstructured.Unstructured
	// Observed is the member's object, of Retain only.
	Observed *unstructured.Unstructured
	// Replicas is of ReviseReplica only.
	Replicas int32
	// Items are of AggregateStatus only.
	Items []workv1alpha2.AggregatedStatusItem
}

// Target is what can be called. Interpret may change call.Object.
type Target interface {
	Interpret(ctx context.Context, call *Call) (*Result, error)
}

// Result is what one operation answered; the fields of the others are absent.
type Result struct {
	Replicas     *int32                                     `json:"replicas,omitempty"`
	Requirements *workv1alpha2.ReplicaRequirements          `json:"replicaRequirements,omitempty"`
	Components   *[]workv1alpha2.Component                  `json:"components,omitempty"`
	Object       *unstructured.Unstructured                 `json:"object,omitempty"`
	Dependencies *[]configv1alpha1.DependentObjectReference `json:"dependencies,omitempty"`
	Status       json.RawMessage                            `json:"status,omitempty"`
	Healthy      *bool                                      `json:"healthy,omitempty"`
	// Sent is there for a call that was amended.
	Sent *Sent `json:"sent,omitempty"`
}

// ChangesObject says whether the operation answers with an object.
func ChangesObject(operation configv1alpha1.InterpreterOperation) bool {
	switch operation {
	case configv1alpha1.InterpreterOperationReviseReplica,
		configv1alpha1.InterpreterOperationRetain,
		configv1alpha1.InterpreterOperationAggregateStatus:
		return true
	default:
		return false
	}
}

// ParseOperation reads Karmada's spelling.
func ParseOperation(name string) (configv1alpha1.InterpreterOperation, error) {
	for _, operation := range Operations {
		if string(operation) == name {
			return operation, nil
		}
	}
	return "", fmt.Errorf("unknown operation %q: the operations are %v", name, Operations)
}

// DecodeObject reads an object from JSON. A kind that is given overrides what the
// object says of itself.
func DecodeObject(data []byte, kind *schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	var fields map[string]any
	if err := decodeExact(data, &fields); err != nil {
		return nil, fmt.Errorf("failed to read the object: %w", err)
	}
	if fields == nil {
		return nil, errors.New("failed to read the object: it is not a JSON object")
	}
	object := &unstructured.Unstructured{Object: fields}
	if kind != nil {
		object.SetGroupVersionKind(*kind)
	}
	if object.GetKind() == "" || object.GetAPIVersion() == "" {
		return nil, errors.New("failed to read the object: apiVersion or kind is missing")
	}
	return object, nil
}
