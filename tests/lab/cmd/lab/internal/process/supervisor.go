// Package process starts, watches and ends the programs of a lab.
//
// Invariants: a program runs at most once at a time under its name; none outlives
// the supervisor, however that ends; Start returns only when the program says
// that it is ready or has died.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sort"
	"sync"
	"syscall"
	"time"
)

const (
	probeInterval = 50 * time.Millisecond
	stopGrace     = 10 * time.Second
	tailBytes     = 4096
)

// Definition says how to run one program.
type Definition struct {
	// Name is unique in the lab.
	Name string
	// Program is the path of the executable.
	Program string
	Args    []string
	// Log is the file that output is appended to.
	Log string
	// Ready answers nil once the program serves. It is asked repeatedly; nil
	// means ready at once.
	Ready func(context.Context) error
}

// Death describes a program that ended without being asked to.
type Death struct {
	Name    string
	Message string
	// Log is the end of the program's log.
	Log string
}

func (d *Death) Error() string { return fmt.Sprintf("%s %s", d.Name, d.Message) }

// State of one program, for people and for `status`.
type State struct {
	Name    string `json:"name"`
	Pid     int    `json:"pid,omitempty"`
	Running bool   `json:"running"`
	Starts  int    `json:"starts"`
}

// Supervisor holds the programs of one lab. Its methods may be called from
// several goroutines.
type Supervisor struct {
	spawner *spawner
	onDeath func(Death)

	mutex    sync.Mutex
	programs map[string]*program
	closed   bool
}

type program struct {
	definition Definition
	command    *exec.Cmd
	exited     chan struct{}
	// expected is set before we end the program ourselves.
	expected bool
	starts   int
}

// New makes a supervisor. onDeath is called, once per death, for each program
// that ends without being asked to.
func New(onDeath func(Death)) *Supervisor {
	return &Supervisor{spawner: newSpawner(), onDeath: onDeath, programs: map[string]*program{}}
}

// Define adds a program without starting it.
func (s *Supervisor) Define(definition Definition) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if _, taken := s.programs[definition.Name]; taken {
		return fmt.Errorf("two programs are named %s", definition.Name)
	}
	s.programs[definition.Name] = &program{definition: definition}
	return nil
}

// Start starts the program and waits until it is ready. A program that dies
// before that is a *Death.
func (s *Supervisor) Start(ctx context.Context, name string) error {
	current, exited, err := s.launch(name)
	if err != nil {
		return err
	}
	return awaitReady(ctx, current.definition, exited)
}

func (s *Supervisor) launch(name string) (*program, <-chan struct{}, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	current, err := s.find(name)
	if err != nil {
		return nil, nil, err
	}
	if s.closed {
		return nil, nil, errors.New("the lab is ending")
	}
	if current.running() {
		return nil, nil, fmt.Errorf("%s runs already with pid %d", name, current.command.Process.Pid)
	}
	log, err := os.OpenFile(current.definition.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to open the log of %s: %w", name, err)
	}
	defer log.Close()
	command := exec.Command(current.definition.Program, current.definition.Args...)
	command.Stdout, command.Stderr = log, log
	if err := s.spawner.start(command); err != nil {
		return nil, nil, fmt.Errorf("failed to start %s: %w", name, err)
	}
	current.command, current.exited, current.expected = command, make(chan struct{}), false
	current.starts++
	go s.watch(current, command, current.exited)
	return current, current.exited, nil
}

// watch waits for the end of one run of the program.
func (s *Supervisor) watch(current *program, command *exec.Cmd, exited chan struct{}) {
	err := command.Wait()
	s.mutex.Lock()
	unexpected := !current.expected
	s.mutex.Unlock()
	close(exited)
	if unexpected {
		s.onDeath(death(current.definition, err))
	}
}

func awaitReady(ctx context.Context, definition Definition, exited <-chan struct{}) error {
	if definition.Ready == nil {
		return nil
	}
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	for {
		probe, cancel := context.WithTimeout(ctx, time.Second)
		reason := definition.Ready(probe)
		cancel()
		if reason == nil {
			return nil
		}
		select {
		case <-exited:
			death := death(definition, nil)
			return &death
		case <-ctx.Done():
			return fmt.Errorf("%s did not become ready: %w (%s)", definition.Name, reason, ctx.Err())
		case <-ticker.C:
		}
	}
}

// Stop asks the program to end and waits for it; after ten seconds it is killed.
// A program that does not run is left alone.
func (s *Supervisor) Stop(name string) error {
	return s.end(name, syscall.SIGTERM)
}

// Kill ends the program with SIGKILL and waits for it.
func (s *Supervisor) Kill(name string) error {
	return s.end(name, syscall.SIGKILL)
}

func (s *Supervisor) end(name string, signal syscall.Signal) error {
	s.mutex.Lock()
	current, err := s.find(name)
	if err != nil || !current.running() {
		s.mutex.Unlock()
		return err
	}
	current.expected = true
	process, exited := current.command.Process, current.exited
	s.mutex.Unlock()
	deliver(process, signal)
	// A stopped process acts on SIGTERM only when it continues.
	deliver(process, syscall.SIGCONT)
	select {
	case <-exited:
	case <-time.After(stopGrace):
		deliver(process, syscall.SIGKILL)
		<-exited
	}
	return nil
}

// Signal sends the signal to a running program.
func (s *Supervisor) Signal(name string, signal syscall.Signal) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	current, err := s.find(name)
	if err != nil {
		return err
	}
	if !current.running() {
		return fmt.Errorf("%s does not run", name)
	}
	return current.command.Process.Signal(signal)
}

// Close kills every program and waits for all of them. Nothing starts after it.
func (s *Supervisor) Close() {
	s.mutex.Lock()
	s.closed = true
	var waits []chan struct{}
	for _, current := range s.programs {
		if current.running() {
			current.expected = true
			deliver(current.command.Process, syscall.SIGKILL)
			waits = append(waits, current.exited)
		}
	}
	s.mutex.Unlock()
	for _, exited := range waits {
		<-exited
	}
}

// Status lists every program by name.
func (s *Supervisor) Status() []State {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	states := make([]State, 0, len(s.programs))
	for name, current := range s.programs {
		state := State{Name: name, Running: current.running(), Starts: current.starts}
		if state.Running {
			state.Pid = current.command.Process.Pid
		}
		states = append(states, state)
	}
	sort.Slice(states, func(i, j int) bool { return states[i].Name < states[j].Name })
	return states
}

func (s *Supervisor) find(name string) (*program, error) {
	current, found := s.programs[name]
	if !found {
		return nil, fmt.Errorf("no program is named %s", name)
	}
	return current, nil
}

func (p *program) running() bool {
	if p.command == nil {
		return false
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

func death(definition Definition, err error) Death {
	message := "ended"
	if err != nil {
		message = "ended: " + err.Error()
	}
	return Death{Name: definition.Name, Message: message, Log: tail(definition.Log)}
}

// deliver ignores errors: the only one possible is that the process is gone.
func deliver(process *os.Process, signal syscall.Signal) {
	_ = process.Signal(signal)
}

// tail is the last few lines of a file, empty when it cannot be read.
func tail(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return ""
	}
	offset := max(0, info.Size()-tailBytes)
	buffer := make([]byte, info.Size()-offset)
	n, _ := file.ReadAt(buffer, offset)
	return string(buffer[:n])
}
