package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"

	"popcell.dev/lab/internal/interpreter"
)

// row is one call to make.
type row struct {
	ID             json.RawMessage `json:"id"`
	URL            string          `json:"url"`
	CAFile         string          `json:"ca_file"`
	CAPEM          string          `json:"ca_pem"`
	TimeoutSeconds *int32          `json:"timeout_seconds"`
	// Amend adds unknown fields to the client's request.
	Amend bool `json:"amend"`
	// Customizations are files of Lua to run in process instead of a URL.
	Customizations []string `json:"customizations"`

	Operation string                              `json:"operation"`
	Kind      *kind                               `json:"kind"`
	Object    json.RawMessage                     `json:"object"`
	Observed  json.RawMessage                     `json:"observed"`
	Replicas  int32                               `json:"replicas"`
	Items     []workv1alpha2.AggregatedStatusItem `json:"aggregated_status"`
}

type kind struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

// answer is what became of a row.
type answer struct {
	ID     json.RawMessage     `json:"id"`
	OK     bool                `json:"ok"`
	Error  string              `json:"error,omitempty"`
	Result *interpreter.Result `json:"result,omitempty"`
	Micros int64               `json:"micros"`
}

// runner keeps one client per endpoint, as Karmada does.
type runner struct {
	targets map[string]interpreter.Target
}

func newRunner() *runner { return &runner{targets: map[string]interpreter.Target{}} }

func (r *runner) answer(ctx context.Context, line []byte) answer {
	var asked row
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&asked); err != nil {
		return answer{ID: identity(line), Error: fmt.Sprintf("failed to read the row: %v", err)}
	}
	if asked.ID == nil {
		asked.ID = json.RawMessage("null")
	}
	call, err := asked.call()
	if err != nil {
		return answer{ID: asked.ID, Error: err.Error()}
	}
	target, err := r.target(ctx, &asked)
	if err != nil {
		return answer{ID: asked.ID, Error: err.Error()}
	}
	started := time.Now()
	result, err := target.Interpret(ctx, call)
	micros := time.Since(started).Microseconds()
	if err != nil {
		return answer{ID: asked.ID, Error: err.Error(), Micros: micros}
	}
	return answer{ID: asked.ID, OK: true, Result: result, Micros: micros}
}

// identity is the id of a line that is no row, where there is one.
func identity(line []byte) json.RawMessage {
	var named struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(line, &named) != nil || named.ID == nil {
		return json.RawMessage("null")
	}
	return named.ID
}

func (r *row) call() (*interpreter.Call, error) {
	operation, err := interpreter.ParseOperation(r.Operation)
	if err != nil {
		return nil, err
	}
	var override *schema.GroupVersionKind
	if r.Kind != nil {
		override = &schema.GroupVersionKind{Group: r.Kind.Group, Version: r.Kind.Version, Kind: r.Kind.Kind}
	}
	object, err := interpreter.DecodeObject(r.Object, override)
	if err != nil {
		return nil, err
	}
	call := &interpreter.Call{Operation: operation, Object: object, Replicas: r.Replicas, Items: r.Items}
	if len(r.Observed) > 0 && string(r.Observed) != "null" {
		if call.Observed, err = interpreter.DecodeObject(r.Observed, override); err != nil {
			return nil, fmt.Errorf("observed: %w", err)
		}
	}
	return call, nil
}

func (r *runner) target(ctx context.Context, asked *row) (interpreter.Target, error) {
	if (asked.URL == "") == (len(asked.Customizations) == 0) {
		return nil, errors.New("a row needs either url or customizations")
	}
	authority := []byte(asked.CAPEM)
	if asked.CAFile != "" {
		var err error
		if authority, err = os.ReadFile(asked.CAFile); err != nil {
			return nil, fmt.Errorf("failed to read the authority: %w", err)
		}
	}
	timeout := "none"
	if asked.TimeoutSeconds != nil {
		timeout = fmt.Sprint(*asked.TimeoutSeconds)
	}
	key := strings.Join([]string{asked.URL, timeout, fmt.Sprint(asked.Amend), string(authority), strings.Join(asked.Customizations, "\n")}, "\x00")
	if known, found := r.targets[key]; found {
		return known, nil
	}
	target, err := newTarget(ctx, asked, authority)
	if err != nil {
		return nil, err
	}
	r.targets[key] = target
	return target, nil
}

func newTarget(ctx context.Context, asked *row, authority []byte) (interpreter.Target, error) {
	if asked.URL == "" {
		return interpreter.NewLua(asked.Customizations...)
	}
	if asked.Amend {
		return interpreter.NewAmended(ctx, asked.URL, authority, asked.TimeoutSeconds)
	}
	return interpreter.NewWebhook(ctx, asked.URL, authority, asked.TimeoutSeconds)
}
