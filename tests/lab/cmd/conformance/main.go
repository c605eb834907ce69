// Command conformance calls an interpreter with Karmada's own client: rows in,
// answers out, one JSON line each. README.md of this module has the format.
//
// Answers come in the order of the rows unless --parallel is above one; then the
// id tells which is which.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"

	"k8s.io/klog/v2"
)

func main() {
	parallel := flag.Int("parallel", 1, "rows that may be under way at once")
	verbose := flag.Bool("verbose", false, "show what Karmada's client logs, on standard error")
	flag.Parse()
	if *parallel < 1 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: conformance [--parallel N] [--verbose] < rows > answers")
		os.Exit(2)
	}
	if !*verbose {
		klog.SetOutput(io.Discard)
		klog.LogToStderr(false)
	}
	if err := run(os.Stdin, os.Stdout, *parallel); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run(input io.Reader, output io.Writer, parallel int) error {
	runner := newRunner()
	answers := newAnswers(output)
	slots := make(chan struct{}, parallel)
	var running sync.WaitGroup
	reader := bufio.NewReaderSize(input, 1<<20)
	for {
		line, err := reader.ReadBytes('\n')
		if len(line) > 1 {
			slots <- struct{}{}
			running.Go(func() {
				defer func() { <-slots }()
				answers.write(runner.answer(context.Background(), line))
			})
		}
		if errors.Is(err, io.EOF) {
			running.Wait()
			return answers.err
		}
		if err != nil {
			return fmt.Errorf("failed to read rows: %w", err)
		}
	}
}

// answers writes lines and keeps the first error.
type answers struct {
	mutex  sync.Mutex
	output io.Writer
	err    error
}

func newAnswers(output io.Writer) *answers { return &answers{output: output} }

func (a *answers) write(answer answer) {
	line, err := json.Marshal(answer)
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if err == nil {
		_, err = a.output.Write(append(line, '\n'))
	}
	if a.err == nil && err != nil {
		a.err = fmt.Errorf("failed to write an answer: %w", err)
	}
}
