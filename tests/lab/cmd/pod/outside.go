package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
)

// isolated is this program again, in namespaces of its own, with these
// arguments.
func isolated(arguments ...string) *exec.Cmd {
	// The kernel ties PDEATHSIG to the thread that forked, so this one must not end.
	runtime.LockOSThread()
	command := exec.Command("/proc/self/exe", arguments...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		Pdeathsig:  syscall.SIGKILL,
	}
	return command
}

// outside carries connections between the two networks, and runs what is inside
// until it ends.
func (s *spec) outside(file string) error {
	for i, route := range s.Reach {
		if err := carry("unix", s.reachSocket(i), "tcp", route.To); err != nil {
			return err
		}
	}
	ports := map[string]int{}
	for _, port := range s.Ports {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("failed to open a port: %w", err)
		}
		ports[strconv.Itoa(port)] = listener.Addr().(*net.TCPAddr).Port
		go accept(listener, "unix", s.portSocket(port))
	}
	command := isolated("inside", file)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	if err := command.Start(); err != nil {
		return fmt.Errorf("failed to make namespaces: %w", err)
	}
	go func() {
		for range signals {
			_ = command.Process.Signal(syscall.SIGTERM)
		}
	}()
	data, err := json.Marshal(ports)
	if err != nil {
		return fmt.Errorf("failed to write the ports: %w", err)
	}
	// Who reads it finds all of it.
	unfinished := filepath.Join(s.Dir, "ports.unfinished")
	if err := os.WriteFile(unfinished, data, 0o644); err != nil {
		return fmt.Errorf("failed to write the ports: %w", err)
	}
	if err := os.Rename(unfinished, filepath.Join(s.Dir, "ports.json")); err != nil {
		return fmt.Errorf("failed to write the ports: %w", err)
	}
	return command.Wait()
}

func (s *spec) reachSocket(i int) string {
	return filepath.Join(s.Dir, fmt.Sprintf("reach-%d.sock", i))
}
func (s *spec) portSocket(port int) string {
	return filepath.Join(s.Dir, fmt.Sprintf("port-%d.sock", port))
}
