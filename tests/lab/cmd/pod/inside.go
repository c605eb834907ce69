package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// inside makes the program's root directory and network, and runs it there.
func (s *spec) inside() error {
	if err := loopback(); err != nil {
		return err
	}
	for i, route := range s.Reach {
		if err := carry("tcp", route.From, "unix", s.reachSocket(i)); err != nil {
			return err
		}
	}
	for _, port := range s.Ports {
		if err := carry("unix", s.portSocket(port), "tcp", fmt.Sprintf("127.0.0.1:%d", port)); err != nil {
			return err
		}
	}
	if err := s.mountAll(); err != nil {
		return err
	}
	command := &exec.Cmd{
		Path: s.Command[0], Args: s.Command, Env: s.Env, Dir: "/",
		Stdout: os.Stdout, Stderr: os.Stderr,
		SysProcAttr: &syscall.SysProcAttr{
			Chroot:     s.Root,
			Credential: &syscall.Credential{Uid: s.User, Gid: s.Group, Groups: []uint32{s.FSGroup}},
		},
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	if err := command.Start(); err != nil {
		return fmt.Errorf("failed to start %s: %w", s.Command[0], err)
	}
	go func() {
		for range signals {
			_ = command.Process.Signal(syscall.SIGTERM)
		}
	}()
	return command.Wait()
}

func (s *spec) mountAll() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("failed to keep mounts apart: %w", err)
	}
	// A mount of its own, which can be made read-only.
	if err := bind(s.Root, s.Root); err != nil {
		return err
	}
	for _, mount := range s.Mounts {
		target := filepath.Join(s.Root, mount.To)
		if err := placeFor(mount.From, target); err != nil {
			return err
		}
		if err := bind(mount.From, target); err != nil {
			return err
		}
		if err := readOnly(target); err != nil {
			return err
		}
	}
	for _, path := range s.Empty {
		target := filepath.Join(s.Root, path)
		if err := mountNew("tmpfs", target, fmt.Sprintf("mode=2770,gid=%d", s.FSGroup)); err != nil {
			return err
		}
	}
	if err := mountNew("proc", filepath.Join(s.Root, "proc"), ""); err != nil {
		return err
	}
	return readOnly(s.Root)
}

// placeFor makes what a file or a directory can be mounted on.
func placeFor(from, target string) error {
	info, err := os.Stat(from)
	if err != nil {
		return fmt.Errorf("failed to mount: %w", err)
	}
	directory := target
	if !info.IsDir() {
		directory = filepath.Dir(target)
	}
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return fmt.Errorf("failed to mount: %w", err)
	}
	if info.IsDir() {
		return nil
	}
	if err := os.WriteFile(target, nil, 0o644); err != nil {
		return fmt.Errorf("failed to mount: %w", err)
	}
	return nil
}

func bind(from, target string) error {
	if err := unix.Mount(from, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("failed to mount %s at %s: %w", from, target, err)
	}
	return nil
}

func readOnly(target string) error {
	if err := unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("failed to make %s read-only: %w", target, err)
	}
	return nil
}

func mountNew(kind, target, options string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return fmt.Errorf("failed to mount: %w", err)
	}
	if err := unix.Mount(kind, target, kind, 0, options); err != nil {
		return fmt.Errorf("failed to mount %s at %s: %w", kind, target, err)
	}
	return nil
}

// loopback makes all of 127.0.0.0/8 the program's own addresses.
func loopback() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return fmt.Errorf("failed to open a socket: %w", err)
	}
	defer unix.Close(socket)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("failed to name the loopback: %w", err)
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("failed to start the loopback: %w", err)
	}
	return nil
}
