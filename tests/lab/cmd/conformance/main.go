// Command conformance calls an interpreter with Karmada's own client: rows in,
// answers out, one JSON line each. README.md of this module has the format.
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

	"k8s.io/klog/v2"
)

func main() {
	verbose := flag.Bool("verbose", false, "show what Karmada's client logs, on standard error")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: conformance [--verbose] < rows > answers")
		os.Exit(2)
	}
	if !*verbose {
		klog.SetOutput(io.Discard)
		klog.LogToStderr(false)
	}
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run(input io.Reader, output io.Writer) error {
	runner := newRunner()
	answers := json.NewEncoder(output)
	reader := bufio.NewReaderSize(input, 1<<20)
	for {
		line, err := reader.ReadBytes('\n')
		if len(line) > 1 {
			if err := answers.Encode(runner.answer(context.Background(), line)); err != nil {
				return fmt.Errorf("failed to write an answer: %w", err)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("failed to read rows: %w", err)
		}
	}
}
