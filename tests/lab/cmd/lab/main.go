// Command lab runs real Kubernetes and Karmada control planes for tests: one
// etcd, an API server per plane, Karmada on the hub, and members that have
// joined it. README.md of this module has the protocol.
//
// Invariants: every line of standard output is one JSON event; nothing that was
// started outlives this process; the end of standard input ends the lab, so a
// dead test leaves nothing behind.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"popcell.dev/lab/cmd/lab/internal/process"
	"popcell.dev/lab/cmd/lab/internal/spec"
)

const usage = `usage: lab run --spec FILE [--detached] [--timeout 3m]

Starts the planes that FILE describes, prints JSON events on standard output and
obeys commands on standard input:
  ` + commandUsage + `
Ends everything when standard input closes (not with --detached), or on SIGTERM
or SIGINT.
`

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

var errAsked = errors.New("the lab was asked to end")

func main() {
	if len(os.Args) < 2 || os.Args[1] != "run" {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(exitUsage)
	}
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	file := flags.String("spec", "", "")
	detached := flags.Bool("detached", false, "")
	timeout := flags.Duration("timeout", 3*time.Minute, "")
	if err := flags.Parse(os.Args[2:]); err != nil || *file == "" || flags.NArg() > 0 {
		if err == nil {
			flags.Usage()
		}
		os.Exit(exitUsage)
	}
	// Warnings of the client library would break the protocol's silence.
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	os.Exit(run(*file, *detached, *timeout))
}

func run(file string, detached bool, timeout time.Duration) int {
	events := newEvents(os.Stdout)
	described, err := spec.Read(file)
	if err != nil {
		events.failed(err)
		return exitUsage
	}
	ctx, end := context.WithCancelCause(context.Background())
	defer end(nil)
	endOnSignals(end, detached)
	lines := readCommands(os.Stdin)
	commands := make(chan string, 1024)
	go forward(lines, commands, func() {
		if !detached {
			end(errAsked)
		}
	})
	if err := serve(ctx, end, described, events, commands, timeout); err != nil && !errors.Is(context.Cause(ctx), errAsked) {
		events.failed(err)
		return exitFailed
	}
	return exitOK
}

// forward queues commands until the input ends. Commands that came before the
// lab is ready are obeyed then.
func forward(lines <-chan string, commands chan<- string, atEnd func()) {
	for line := range lines {
		commands <- line
	}
	atEnd()
}

func endOnSignals(end context.CancelCauseFunc, detached bool) {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGTERM, syscall.SIGINT)
	if detached {
		signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	} else {
		signal.Notify(caught, syscall.SIGHUP)
	}
	go func() {
		<-caught
		end(errAsked)
	}()
}

// serve brings the lab up, obeys commands until the context ends, and ends
// everything.
func serve(
	ctx context.Context, end context.CancelCauseFunc, described *spec.Spec, events *events,
	commands <-chan string, timeout time.Duration,
) (err error) {
	var starting sync.Once
	abandon := func(reason error) { starting.Do(func() { end(reason) }) }
	l, err := newLab(described, events, func(death process.Death) {
		events.died(death)
		abandon(&death)
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	starts, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the lab did not start within %s", timeout))
	defer cancel()
	if err := l.up(starts); err != nil {
		return err
	}
	// From here on a death is news, not the end of the lab.
	starting.Do(func() {})
	if err := l.announce(); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case line := <-commands:
			l.obey(ctx, line)
		}
	}
}

// announce writes lab.json and the event that says the same.
func (l *lab) announce() error {
	ready := l.ready()
	line, err := json.Marshal(ready)
	if err != nil {
		return fmt.Errorf("failed to describe the lab: %w", err)
	}
	if err := os.WriteFile(l.layout.ready(), append(line, '\n'), 0o600); err != nil {
		return fmt.Errorf("failed to describe the lab: %w", err)
	}
	l.events.write(ready)
	return nil
}
