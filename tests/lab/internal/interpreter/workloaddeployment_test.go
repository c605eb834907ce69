package interpreter_test

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"

	"popcell.dev/lab/internal/interpreter"
)

const workloadDeployment = "../../testdata/workloaddeployment/"

func interpretDeployment(
	t *testing.T, operation configv1alpha1.InterpreterOperation, edit func(*interpreter.Call),
) (*interpreter.Result, error) {
	t.Helper()
	lua, err := interpreter.NewLua("../../testdata/lua/workloaddeployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	object, err := interpreter.ReadObject(workloadDeployment + "object.yaml")
	if err != nil {
		t.Fatal(err)
	}
	call := &interpreter.Call{Operation: operation, Object: object, Replicas: 5}
	if edit != nil {
		edit(call)
	}
	return lua.Interpret(context.Background(), call)
}

func mustInterpret(
	t *testing.T, operation configv1alpha1.InterpreterOperation, edit func(*interpreter.Call),
) *interpreter.Result {
	t.Helper()
	result, err := interpretDeployment(t, operation, edit)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestLuaReadsAWorkloadDeployment(t *testing.T) {
	replicas := mustInterpret(t, configv1alpha1.InterpreterOperationInterpretReplica, nil)
	if *replicas.Replicas != 3 || replicas.Requirements.ResourceRequest.Cpu().String() != "2" {
		t.Errorf("replicas are %d with %v", *replicas.Replicas, replicas.Requirements)
	}
	health := mustInterpret(t, configv1alpha1.InterpreterOperationInterpretHealth, nil)
	if !*health.Healthy {
		t.Error("it is unhealthy")
	}
	status := mustInterpret(t, configv1alpha1.InterpreterOperationInterpretStatus, nil)
	if !strings.Contains(string(status.Status), `"resourceTemplateGeneration":3`) {
		t.Errorf("status is %s", status.Status)
	}
	revised := mustInterpret(t, configv1alpha1.InterpreterOperationReviseReplica, nil)
	if n, _, _ := unstructured.NestedInt64(revised.Object.Object, "spec", "scaleSettings", "minReplicas"); n != 5 {
		t.Errorf("revised to %d", n)
	}
}

func TestLuaTranslatesTheObservedGeneration(t *testing.T) {
	aggregated := mustInterpret(t, configv1alpha1.InterpreterOperationAggregateStatus, func(call *interpreter.Call) {
		var err error
		if call.Items, err = interpreter.ReadItems(workloadDeployment + "items.yaml"); err != nil {
			t.Fatal(err)
		}
	})
	for field, want := range map[string]int64{"readyReplicas": 2, "observedGeneration": 3} {
		if got, _, _ := unstructured.NestedInt64(aggregated.Object.Object, "status", field); got != want {
			t.Errorf("%s is %d, want %d", field, got, want)
		}
	}
}

func TestLuaCannotDecideOnQuota(t *testing.T) {
	_, err := interpretDeployment(t, configv1alpha1.InterpreterOperationInterpretHealth, func(call *interpreter.Call) {
		call.Object.Object["status"] = map[string]any{"conditions": []any{map[string]any{
			"type": "Available", "status": "False", "reason": "PendingQuota",
		}}}
	})
	if err == nil || !strings.Contains(err.Error(), "PendingQuota") {
		t.Errorf("error is %v", err)
	}
}
