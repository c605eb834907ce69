package interpreter

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-io/karmada/pkg/resourceinterpreter/customized/declarative"
)

// Lua runs customizations in this process, as Karmada's controllers do.
type Lua struct {
	interpreter *declarative.ConfigurableInterpreter
}

// NewLua reads ResourceInterpreterCustomizations, one in each file.
func NewLua(files ...string) (*Lua, error) {
	var customizations []*configv1alpha1.ResourceInterpreterCustomization
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("failed to read a customization: %w", err)
		}
		customization := &configv1alpha1.ResourceInterpreterCustomization{}
		if err := yaml.UnmarshalStrict(data, customization); err != nil {
			return nil, fmt.Errorf("failed to read the customization in %s: %w", file, err)
		}
		customizations = append(customizations, customization)
	}
	interpreter := declarative.NewConfigurableInterpreter(nil)
	interpreter.LoadConfig(customizations)
	return &Lua{interpreter}, nil
}

// Interpret runs one script.
func (l *Lua) Interpret(_ context.Context, call *Call) (*Result, error) {
	result := &Result{}
	var enabled bool
	var err error
	switch call.Operation {
	case configv1alpha1.InterpreterOperationInterpretReplica:
		var replicas int32
		replicas, result.Requirements, enabled, err = l.interpreter.GetReplicas(call.Object)
		result.Replicas = &replicas
	case configv1alpha1.InterpreterOperationInterpretComponent:
		components, found, failure := l.interpreter.GetComponents(call.Object)
		result.Components, enabled, err = notNil(components), found, failure
	case configv1alpha1.InterpreterOperationReviseReplica:
		result.Object, enabled, err = l.interpreter.ReviseReplica(call.Object, int64(call.Replicas))
	case configv1alpha1.InterpreterOperationRetain:
		result.Object, enabled, err = l.interpreter.Retain(call.Object, call.Observed)
	case configv1alpha1.InterpreterOperationAggregateStatus:
		result.Object, enabled, err = l.interpreter.AggregateStatus(call.Object, call.Items)
	case configv1alpha1.InterpreterOperationInterpretDependency:
		dependencies, found, failure := l.interpreter.GetDependencies(call.Object)
		result.Dependencies, enabled, err = notNil(dependencies), found, failure
	case configv1alpha1.InterpreterOperationInterpretStatus:
		status, found, failure := l.interpreter.ReflectStatus(call.Object)
		enabled, err = found, failure
		if status != nil {
			result.Status = json.RawMessage(status.Raw)
		}
	case configv1alpha1.InterpreterOperationInterpretHealth:
		var healthy bool
		healthy, enabled, err = l.interpreter.InterpretHealth(call.Object)
		result.Healthy = &healthy
	default:
		return nil, fmt.Errorf("unknown operation %q", call.Operation)
	}
	return finish(result, enabled, err)
}
