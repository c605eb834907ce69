package process

import (
	"os/exec"
	"runtime"
	"syscall"
)

// spawner starts every child from one operating system thread that never ends.
// The kernel ties PDEATHSIG to the thread that forked, not to the process: a
// child started from a thread that Go later retires would be killed with it.
type spawner struct {
	requests chan spawnRequest
}

type spawnRequest struct {
	command *exec.Cmd
	result  chan error
}

func newSpawner() *spawner {
	s := &spawner{requests: make(chan spawnRequest)}
	go func() {
		runtime.LockOSThread()
		for request := range s.requests {
			request.result <- request.command.Start()
		}
	}()
	return s
}

// start starts the command in a process group of its own, so that an interrupt
// typed at a terminal reaches the supervisor alone, and ties its life to the
// supervisor's.
func (s *spawner) start(command *exec.Cmd) error {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	request := spawnRequest{command: command, result: make(chan error, 1)}
	s.requests <- request
	return <-request.result
}
