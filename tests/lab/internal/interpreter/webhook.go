package interpreter

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-io/karmada/pkg/resourceinterpreter/customized/webhook"
	"github.com/karmada-io/karmada/pkg/resourceinterpreter/customized/webhook/request"
	"github.com/karmada-io/karmada/pkg/util"
	"github.com/karmada-io/karmada/pkg/util/fedinformer/genericmanager"
)

// Webhook is an interpreter behind a URL.
type Webhook struct {
	client *webhook.CustomizedInterpreter
}

// NewWebhook makes a client for one endpoint, whatever kind it interprets. caPEM
// may be empty for the system's authorities; timeoutSeconds may be nil for none.
func NewWebhook(ctx context.Context, url string, caPEM []byte, timeoutSeconds *int32) (*Webhook, error) {
	listKinds := map[schema.GroupVersionResource]string{
		util.ResourceInterpreterWebhookConfigurationsGVR: "ResourceInterpreterWebhookConfigurationList",
	}
	// Karmada's constructor wants an informer; it is never started, because the
	// configuration is given below.
	nothing := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), listKinds)
	client, err := webhook.NewCustomizedInterpreter(genericmanager.NewSingleClusterInformerManager(ctx, nothing, 0), nil)
	if err != nil {
		return nil, fmt.Errorf("failed to make Karmada's webhook client: %w", err)
	}
	client.LoadConfig([]*configv1alpha1.ResourceInterpreterWebhookConfiguration{configuration(url, caPEM, timeoutSeconds)})
	return &Webhook{client}, nil
}

func configuration(url string, caPEM []byte, timeoutSeconds *int32) *configv1alpha1.ResourceInterpreterWebhookConfiguration {
	return &configv1alpha1.ResourceInterpreterWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "lab"},
		Webhooks: []configv1alpha1.ResourceInterpreterWebhook{{
			Name:         "lab.popcell.dev",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: caPEM},
			Rules: []configv1alpha1.RuleWithOperations{{
				Operations: []configv1alpha1.InterpreterOperation{configv1alpha1.InterpreterOperationAll},
				Rule: configv1alpha1.Rule{
					APIGroups: []string{"*"}, APIVersions: []string{"*"}, Kinds: []string{"*"},
				},
			}},
			TimeoutSeconds:             timeoutSeconds,
			InterpreterContextVersions: []string{configv1alpha1.GroupVersion.Version},
		}},
	}
}

// Interpret makes one call over HTTPS.
func (w *Webhook) Interpret(ctx context.Context, call *Call) (*Result, error) {
	attributes := &request.Attributes{
		Operation:        call.Operation,
		Object:           call.Object,
		ObservedObj:      call.Observed,
		ReplicasSet:      call.Replicas,
		AggregatedStatus: call.Items,
	}
	result := &Result{}
	var matched bool
	var err error
	switch call.Operation {
	case configv1alpha1.InterpreterOperationInterpretReplica:
		var replicas int32
		replicas, result.Requirements, matched, err = w.client.GetReplicas(ctx, attributes)
		result.Replicas = &replicas
	case configv1alpha1.InterpreterOperationInterpretComponent:
		components, found, failure := w.client.GetComponents(ctx, attributes)
		result.Components, matched, err = notNil(components), found, failure
	case configv1alpha1.InterpreterOperationInterpretDependency:
		dependencies, found, failure := w.client.GetDependencies(ctx, attributes)
		result.Dependencies, matched, err = notNil(dependencies), found, failure
	case configv1alpha1.InterpreterOperationInterpretStatus:
		status, found, failure := w.client.ReflectStatus(ctx, attributes)
		matched, err = found, failure
		if status != nil {
			result.Status = json.RawMessage(status.Raw)
		}
	case configv1alpha1.InterpreterOperationInterpretHealth:
		var healthy bool
		healthy, matched, err = w.client.InterpretHealth(ctx, attributes)
		result.Healthy = &healthy
	default:
		result.Object, matched, err = w.client.Patch(ctx, attributes)
	}
	return finish(result, matched, err)
}

func finish(result *Result, matched bool, err error) (*Result, error) {
	if err != nil {
		return nil, err
	}
	if !matched {
		return nil, ErrNotInterpreted
	}
	return result, nil
}

// notNil shows an empty list as a list.
func notNil[T any](list []T) *[]T {
	if list == nil {
		list = []T{}
	}
	return &list
}
