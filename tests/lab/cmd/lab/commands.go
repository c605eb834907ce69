package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
)

const commandUsage = "stop P | start P | restart P | kill P | signal P STOP|CONT|TERM|HUP|USR1|USR2 | status | " +
	"snapshot PLANE FILE | restore PLANE FILE | user NAME [group...] | server-certificate NAME HOST..."

var signals = map[string]syscall.Signal{
	"STOP": syscall.SIGSTOP,
	"CONT": syscall.SIGCONT,
	"TERM": syscall.SIGTERM,
	"HUP":  syscall.SIGHUP,
	"USR1": syscall.SIGUSR1,
	"USR2": syscall.SIGUSR2,
}

// readCommands sends each line of the input and closes the channel at its end.
func readCommands(input io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(input)
		for scanner.Scan() {
			lines <- scanner.Text()
		}
	}()
	return lines
}

// obey does one command and answers it.
func (l *lab) obey(ctx context.Context, line string) {
	words := strings.Fields(line)
	if len(words) == 0 {
		return
	}
	answer, err := l.perform(ctx, words[0], words[1:])
	l.events.answer(line, answer, err)
}

func (l *lab) perform(ctx context.Context, verb string, arguments []string) (answerEvent, error) {
	switch {
	case verb == "status" && len(arguments) == 0:
		return answerEvent{Processes: l.processes.Status()}, nil
	case verb == "user" && len(arguments) > 0:
		return l.answerUser(arguments[0], arguments[1:])
	case verb == "server-certificate" && len(arguments) > 1:
		certFile, keyFile, err := l.addServer(arguments[0], arguments[1:])
		return answerEvent{CertFile: certFile, KeyFile: keyFile}, err
	case verb == "snapshot" && len(arguments) == 2:
		return answerEvent{}, l.snapshot(ctx, arguments[0], arguments[1])
	case verb == "restore" && len(arguments) == 2:
		return answerEvent{}, l.restore(ctx, arguments[0], arguments[1])
	case verb == "signal" && len(arguments) == 2:
		signal, known := signals[arguments[1]]
		if !known {
			return answerEvent{}, fmt.Errorf("unknown signal %q; %s", arguments[1], commandUsage)
		}
		return answerEvent{}, l.processes.Signal(arguments[0], signal)
	case len(arguments) == 1:
		return l.control(ctx, verb, arguments[0])
	default:
		return answerEvent{}, errors.New("the commands are " + commandUsage)
	}
}

func (l *lab) control(ctx context.Context, verb, name string) (answerEvent, error) {
	var err error
	switch verb {
	case "start":
		err = l.processes.Start(ctx, name)
	case "stop":
		err = l.processes.Stop(name)
	case "kill":
		err = l.processes.Kill(name)
	case "restart":
		if err = l.processes.Stop(name); err == nil {
			err = l.processes.Start(ctx, name)
		}
	default:
		err = errors.New("the commands are " + commandUsage)
	}
	return answerEvent{Pid: l.pid(name)}, err
}

// pid is zero when the program does not run.
func (l *lab) pid(name string) int {
	for _, state := range l.processes.Status() {
		if state.Name == name {
			return state.Pid
		}
	}
	return 0
}

func (l *lab) answerUser(user string, groups []string) (answerEvent, error) {
	files, err := l.addUser(user, groups)
	if err != nil {
		return answerEvent{}, err
	}
	answer := answerEvent{Kubeconfigs: files, Kubeconfig: files[hubName]}
	if answer.Kubeconfig == "" {
		answer.Kubeconfig = files[l.planes[0].name]
	}
	return answer, nil
}
