package main

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"popcell.dev/lab/cmd/lab/internal/process"
)

// events writes what happens as JSON, one line each.
type events struct {
	mutex   sync.Mutex
	output  io.Writer
	started time.Time
}

func newEvents(output io.Writer) *events {
	return &events{output: output, started: time.Now()}
}

func (e *events) seconds() float64 {
	return float64(time.Since(e.started).Milliseconds()) / 1000
}

// write ignores errors: the reader of the events is gone, and its end of our
// standard input with it, which ends the lab.
func (e *events) write(event any) {
	line, err := json.Marshal(event)
	if err != nil {
		line = fmt.Appendf(nil, `{"event":"error","message":%q}`, err)
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	_, _ = e.output.Write(append(line, '\n'))
}

type stepEvent struct {
	Event   string  `json:"event"`
	Step    string  `json:"step"`
	Seconds float64 `json:"seconds"`
}

func (e *events) step(format string, arguments ...any) {
	e.write(stepEvent{Event: "step", Step: fmt.Sprintf(format, arguments...), Seconds: e.seconds()})
}

type failedEvent struct {
	Event   string `json:"event"`
	Process string `json:"process,omitempty"`
	Message string `json:"message"`
	Log     string `json:"log,omitempty"`
}

// failed reports that the lab could not start.
func (e *events) failed(err error) {
	e.write(failedEvent{Event: "failed", Message: err.Error()})
}

// died reports a program that ended by itself.
func (e *events) died(death process.Death) {
	e.write(failedEvent{Event: "failed", Process: death.Name, Message: death.Message, Log: death.Log})
}

type answerEvent struct {
	Event   string `json:"event"`
	Command string `json:"command"`
	Message string `json:"message,omitempty"`

	Pid         int               `json:"pid,omitempty"`
	Processes   []process.State   `json:"processes,omitempty"`
	Kubeconfig  string            `json:"kubeconfig,omitempty"`
	Kubeconfigs map[string]string `json:"kubeconfigs,omitempty"`
	CertFile    string            `json:"cert_file,omitempty"`
	KeyFile     string            `json:"key_file,omitempty"`
}

func (e *events) answer(command string, answer answerEvent, err error) {
	answer.Command = command
	answer.Event = "done"
	if err != nil {
		answer = answerEvent{Event: "error", Command: command, Message: err.Error()}
	}
	e.write(answer)
}

type planeInfo struct {
	Kubeconfig string `json:"kubeconfig"`
	URL        string `json:"url"`
	Mode       string `json:"mode,omitempty"`
}

type keyPairInfo struct {
	CertFile string `json:"cert_file"`
	KeyFile  string `json:"key_file"`
}

// readyEvent is also the content of lab.json.
type readyEvent struct {
	Event      string               `json:"event"`
	Address    string               `json:"address"`
	Dir        string               `json:"dir"`
	Bin        string               `json:"bin"`
	Hub        *planeInfo           `json:"hub,omitempty"`
	Members    map[string]planeInfo `json:"members"`
	Planes     map[string]planeInfo `json:"planes"`
	CAFile     string               `json:"ca_file"`
	FrontProxy keyPairInfo          `json:"front_proxy"`
	EtcdURL    string               `json:"etcd_url"`
	Pids       map[string]int       `json:"pids"`
	Supervisor int                  `json:"supervisor_pid"`
	Seconds    float64              `json:"seconds"`
}
