// Command pod runs one program as a container runtime runs a container: in
// namespaces of its own, in a root directory whose only files are those that it
// is given, as the user that it is given.
//
//	pod check       whether this machine lets it; the reason on standard error
//	pod run FILE    runs the program that FILE describes; its exit code is the program's
//
// Invariants: the program sees no file, address or variable but those of FILE;
// nothing that was started outlives this process, and nothing that it mounts is
// seen outside.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

const usage = "usage: pod check | pod run FILE"

// spec is what `pod run` reads.
type spec struct {
	// Dir is a directory for sockets and for ports.json.
	Dir string `json:"dir"`
	// Root becomes the program's root directory, which it cannot write to.
	Root string `json:"root"`
	// Mounts are seen below the root, and cannot be written to.
	Mounts []mount `json:"mounts"`
	// Empty are directories that can be written to.
	Empty []string `json:"empty"`
	// Command is the program, as it is seen below the root, and its arguments.
	Command []string `json:"command"`
	// Env is all of its environment.
	Env []string `json:"env"`
	// User and Group are who it is; FSGroup is a further group of it.
	User    uint32 `json:"user"`
	Group   uint32 `json:"group"`
	FSGroup uint32 `json:"fs_group"`
	// Reach are the addresses outside that it reaches.
	Reach []route `json:"reach"`
	// Ports are its own, which get ports of this machine: ports.json has which.
	Ports []int `json:"ports"`
}

// mount shows a file or a directory of this machine at a path below the root.
type mount struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// route leads from an address that the program dials to one of this machine.
type route struct {
	From string `json:"from"`
	To   string `json:"to"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		if ended, ok := err.(*exec.ExitError); ok {
			os.Exit(exitCode(ended.Sys().(syscall.WaitStatus)))
		}
		fmt.Fprintln(os.Stderr, "pod:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	switch {
	case len(arguments) == 1 && arguments[0] == "check":
		return isolated("inside-nothing").Run()
	case len(arguments) == 1 && arguments[0] == "inside-nothing":
		return nil
	case len(arguments) == 2 && arguments[0] == "run":
		s, err := read(arguments[1])
		if err != nil {
			return err
		}
		return s.outside(arguments[1])
	case len(arguments) == 2 && arguments[0] == "inside":
		s, err := read(arguments[1])
		if err != nil {
			return err
		}
		return s.inside()
	default:
		return fmt.Errorf(usage)
	}
}

func read(file string) (*spec, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("failed to read the spec: %w", err)
	}
	var s spec
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("failed to read the spec %s: %w", file, err)
	}
	if len(s.Command) == 0 {
		return nil, fmt.Errorf("failed to read the spec %s: no command", file)
	}
	return &s, nil
}

// exitCode is the one that a shell would give.
func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
