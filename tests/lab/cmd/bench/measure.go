package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"popcell.dev/lab/internal/interpreter"
)

// report is one line of output. CPU times are user and system time of the whole
// process per call, in microseconds.
type report struct {
	Label     string `json:"label,omitempty"`
	Mode      string `json:"mode"`
	Operation string `json:"operation"`
	Callers   int    `json:"callers"`
	Calls     int    `json:"calls"`

	Seconds        float64 `json:"seconds"`
	CallsPerSecond float64 `json:"calls_per_second"`
	P50            float64 `json:"p50_micros"`
	P99            float64 `json:"p99_micros"`
	Mean           float64 `json:"mean_micros"`

	ClientCPU float64 `json:"client_cpu_micros"`
	// PrepareCPU is the part of ClientCPU that copies the object before each
	// call that changes it; Karmada copies it too.
	PrepareCPU float64  `json:"prepare_cpu_micros"`
	ServerCPU  *float64 `json:"server_cpu_micros,omitempty"`

	ServerRSSBefore *int64 `json:"server_rss_kib_before,omitempty"`
	ServerRSSAfter  *int64 `json:"server_rss_kib_after,omitempty"`
	ServerRSSPeak   *int64 `json:"server_rss_kib_peak,omitempty"`
}

// prepare copies what a call may change, as Karmada's controllers do.
func prepare(input *interpreter.Call) *interpreter.Call {
	call := *input
	if interpreter.ChangesObject(call.Operation) {
		call.Object = call.Object.DeepCopy()
	}
	return &call
}

func (o *options) measure(
	ctx context.Context, target interpreter.Target, input *interpreter.Call, callers int,
) (*report, error) {
	if _, err := drive(ctx, target, input, callers, limit{count: o.warmUp}); err != nil {
		return nil, err
	}
	result := &report{Label: o.label, Mode: "webhook", Operation: string(input.Operation), Callers: callers}
	if o.url == "" {
		result.Mode = "lua"
	}
	before, err := o.server()
	if err != nil {
		return nil, err
	}
	ownBefore, err := ownCPU()
	if err != nil {
		return nil, err
	}
	started := time.Now()
	latencies, err := drive(ctx, target, input, callers, limit{count: o.count, duration: o.duration})
	if err != nil {
		return nil, err
	}
	elapsed := time.Since(started)
	ownAfter, err := ownCPU()
	if err != nil {
		return nil, err
	}
	after, err := o.server()
	if err != nil {
		return nil, err
	}
	result.summarise(latencies, elapsed)
	result.ClientCPU = perCall(ownAfter-ownBefore, len(latencies))
	if before != nil {
		cpu := perCall(after.cpu-before.cpu, len(latencies))
		result.ServerCPU = &cpu
		result.ServerRSSBefore, result.ServerRSSAfter, result.ServerRSSPeak = &before.rss, &after.rss, &after.peak
	}
	result.PrepareCPU, err = preparation(input)
	return result, err
}

// server reads the counters of the webhook's process, nil where it is unknown.
func (o *options) server() (*usage, error) {
	if o.serverPid == 0 {
		return nil, nil
	}
	return usageOf(o.serverPid)
}

func (r *report) summarise(latencies []time.Duration, elapsed time.Duration) {
	slices.Sort(latencies)
	var sum time.Duration
	for _, latency := range latencies {
		sum += latency
	}
	r.Calls = len(latencies)
	r.Seconds = elapsed.Seconds()
	r.CallsPerSecond = float64(len(latencies)) / elapsed.Seconds()
	r.Mean = perCall(sum, len(latencies))
	r.P50 = micros(percentile(latencies, 50))
	r.P99 = micros(percentile(latencies, 99))
}

// percentile is the nearest rank in a sorted list.
func percentile(sorted []time.Duration, percent int) time.Duration {
	rank := (len(sorted)*percent + 99) / 100
	return sorted[max(rank, 1)-1]
}

// limit ends a run: after a time when duration is set, else after count calls in
// all.
type limit struct {
	count    int
	duration time.Duration
}

// drive makes the calls from several goroutines, each with its share.
func drive(
	ctx context.Context, target interpreter.Target, input *interpreter.Call, callers int, until limit,
) ([]time.Duration, error) {
	shares := make([][]time.Duration, callers)
	failures := make([]error, callers)
	deadline := time.Now().Add(until.duration)
	var running sync.WaitGroup
	for caller := range callers {
		count := until.count / callers
		if caller < until.count%callers {
			count++
		}
		running.Go(func() {
			more := func(made int) bool { return made < count }
			if until.duration > 0 {
				more = func(int) bool { return time.Now().Before(deadline) }
			}
			shares[caller], failures[caller] = loop(ctx, target, input, more, count)
		})
	}
	running.Wait()
	for _, err := range failures {
		if err != nil {
			return nil, err
		}
	}
	return slices.Concat(shares...), nil
}

func loop(
	ctx context.Context, target interpreter.Target, input *interpreter.Call, more func(made int) bool, expected int,
) ([]time.Duration, error) {
	latencies := make([]time.Duration, 0, expected)
	for more(len(latencies)) {
		call := prepare(input)
		started := time.Now()
		if _, err := target.Interpret(ctx, call); err != nil {
			return nil, fmt.Errorf("call %d failed: %w", len(latencies)+1, err)
		}
		latencies = append(latencies, time.Since(started))
	}
	return latencies, nil
}

// preparation measures what prepare costs alone.
func preparation(input *interpreter.Call) (float64, error) {
	const rounds = 2000
	if !interpreter.ChangesObject(input.Operation) {
		return 0, nil
	}
	before, err := ownCPU()
	if err != nil {
		return 0, err
	}
	for range rounds {
		prepare(input)
	}
	after, err := ownCPU()
	if err != nil {
		return 0, err
	}
	return perCall(after-before, rounds), nil
}

func perCall(total time.Duration, calls int) float64 {
	if calls == 0 {
		return 0
	}
	return micros(total) / float64(calls)
}

func micros(duration time.Duration) float64 { return float64(duration) / float64(time.Microsecond) }
