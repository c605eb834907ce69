// Command bench measures an interpreter with Karmada's own client: latency,
// calls per second, and the CPU time of client and server per call. README.md of
// this module says how to read the figures.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/klog/v2"

	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"

	"popcell.dev/lab/internal/interpreter"
)

// options are the command line.
type options struct {
	label          string
	url            string
	caFile         string
	timeoutSeconds int
	customizations []string

	operations []configv1alpha1.InterpreterOperation
	callers    []int
	count      int
	duration   time.Duration
	warmUp     int
	serverPid  int

	object, observed, items string
	replicas                int
}

func main() {
	options, err := parse(os.Args[1:])
	if err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
		os.Exit(2)
	}
	// Karmada's client formats its messages at every level; so does this one.
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	if err := run(context.Background(), options, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse(arguments []string) (*options, error) {
	o := &options{}
	var operations, callers string
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.label, "label", "", "name of what is measured, repeated in every line")
	flags.StringVar(&o.url, "url", "", "webhook to call")
	flags.StringVar(&o.caFile, "ca-file", "", "authority of the webhook's certificate")
	flags.IntVar(&o.timeoutSeconds, "timeout-seconds", 5, "timeoutSeconds of the webhook configuration")
	flags.Func("customization", "file of Lua to run in this process instead of calling a URL; may be repeated", func(file string) error {
		o.customizations = append(o.customizations, file)
		return nil
	})
	flags.StringVar(&operations, "operations", "", "comma separated; empty means all that the target interprets")
	flags.StringVar(&callers, "callers", "1", "comma separated numbers of concurrent callers")
	flags.IntVar(&o.count, "count", 2000, "calls per operation and number of callers")
	flags.DurationVar(&o.duration, "duration", 0, "time per operation and number of callers, instead of a count")
	flags.IntVar(&o.warmUp, "warm-up", 200, "calls that are not measured")
	flags.IntVar(&o.serverPid, "server-pid", 0, "process of the webhook, to measure its CPU time and memory")
	flags.StringVar(&o.object, "object", "", "file of the object")
	flags.StringVar(&o.observed, "observed", "", "file of the member's object, for Retain")
	flags.StringVar(&o.items, "items", "", "file of the status items, for AggregateStatus")
	flags.IntVar(&o.replicas, "replicas", 2, "replicas, for ReviseReplica")
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	var err error
	if o.operations, err = parseOperations(operations); err != nil {
		return nil, err
	}
	if o.callers, err = parseNumbers(callers); err != nil {
		return nil, err
	}
	return o, o.check()
}

func (o *options) check() error {
	switch {
	case (o.url == "") == (len(o.customizations) == 0):
		return errors.New("give either --url or --customization")
	case o.object == "":
		return errors.New("--object is missing")
	case o.count < 1 && o.duration <= 0:
		return errors.New("--count must be above zero")
	default:
		return nil
	}
}

func parseOperations(list string) ([]configv1alpha1.InterpreterOperation, error) {
	var operations []configv1alpha1.InterpreterOperation
	for name := range strings.SplitSeq(list, ",") {
		if name == "" {
			continue
		}
		operation, err := interpreter.ParseOperation(name)
		if err != nil {
			return nil, err
		}
		operations = append(operations, operation)
	}
	return operations, nil
}

func parseNumbers(list string) ([]int, error) {
	var numbers []int
	for text := range strings.SplitSeq(list, ",") {
		number, err := strconv.Atoi(text)
		if err != nil || number < 1 {
			return nil, fmt.Errorf("--callers: %q is not a number above zero", text)
		}
		numbers = append(numbers, number)
	}
	return numbers, nil
}

func run(ctx context.Context, o *options, output io.Writer) error {
	target, err := o.target(ctx)
	if err != nil {
		return err
	}
	inputs, err := o.inputs()
	if err != nil {
		return err
	}
	operations, err := o.interpreted(ctx, target, inputs)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(output)
	for _, callers := range o.callers {
		for _, operation := range operations {
			report, err := o.measure(ctx, target, inputs[operation], callers)
			if err != nil {
				return fmt.Errorf("failed to measure %s with %d callers: %w", operation, callers, err)
			}
			if err := encoder.Encode(report); err != nil {
				return fmt.Errorf("failed to write a report: %w", err)
			}
		}
	}
	return nil
}

func (o *options) target(ctx context.Context) (interpreter.Target, error) {
	if o.url == "" {
		return interpreter.NewLua(o.customizations...)
	}
	var authority []byte
	if o.caFile != "" {
		var err error
		if authority, err = os.ReadFile(o.caFile); err != nil {
			return nil, fmt.Errorf("failed to read the authority: %w", err)
		}
	}
	timeout := int32(o.timeoutSeconds)
	return interpreter.NewWebhook(ctx, o.url, authority, &timeout)
}

// inputs are the call of each operation.
func (o *options) inputs() (map[configv1alpha1.InterpreterOperation]*interpreter.Call, error) {
	base := interpreter.Call{Replicas: int32(o.replicas)}
	var err error
	if base.Object, err = interpreter.ReadObject(o.object); err != nil {
		return nil, err
	}
	if o.observed != "" {
		if base.Observed, err = interpreter.ReadObject(o.observed); err != nil {
			return nil, err
		}
	}
	if o.items != "" {
		if base.Items, err = interpreter.ReadItems(o.items); err != nil {
			return nil, err
		}
	}
	calls := map[configv1alpha1.InterpreterOperation]*interpreter.Call{}
	for _, operation := range interpreter.Operations {
		call := base
		call.Operation = operation
		// Karmada sends each field with its own operation only.
		if operation != configv1alpha1.InterpreterOperationRetain {
			call.Observed = nil
		}
		if operation != configv1alpha1.InterpreterOperationAggregateStatus {
			call.Items = nil
		}
		if operation != configv1alpha1.InterpreterOperationReviseReplica {
			call.Replicas = 0
		}
		calls[operation] = &call
	}
	return calls, nil
}

// interpreted lists the operations to measure: those that were asked for, which
// must all work, or those that do work.
func (o *options) interpreted(
	ctx context.Context, target interpreter.Target, inputs map[configv1alpha1.InterpreterOperation]*interpreter.Call,
) ([]configv1alpha1.InterpreterOperation, error) {
	candidates := o.operations
	if len(candidates) == 0 {
		candidates = interpreter.Operations
	}
	var working []configv1alpha1.InterpreterOperation
	var failures []error
	for _, operation := range candidates {
		if _, err := target.Interpret(ctx, prepare(inputs[operation])); err != nil {
			failures = append(failures, fmt.Errorf("%s does not work: %w", operation, err))
			continue
		}
		working = append(working, operation)
	}
	if len(working) == 0 || (len(o.operations) > 0 && len(failures) > 0) {
		return nil, errors.Join(failures...)
	}
	return working, nil
}
