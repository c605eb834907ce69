package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"popcell.dev/lab/cmd/lab/internal/spec"
)

// snapshot asks the running etcd of a plane for a snapshot, as `etcdctl snapshot
// save` does, by its gateway for HTTP.
func (l *lab) snapshot(ctx context.Context, name, file string) error {
	p, err := l.withStore(name)
	if err != nil {
		return err
	}
	url := l.etcdURLOf(p) + "/v3/maintenance/snapshot"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		return err
	}
	answer, err := l.http.Do(request)
	if err != nil {
		return fmt.Errorf("failed to ask for a snapshot: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("failed to ask for a snapshot: %s", answer.Status)
	}
	into, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("failed to save a snapshot: %w", err)
	}
	if err := errors.Join(copySnapshot(into, answer.Body), into.Close()); err != nil {
		return fmt.Errorf("failed to save a snapshot: %w", err)
	}
	return nil
}

// copySnapshot takes the pieces out of a stream of answers.
func copySnapshot(into io.Writer, from io.Reader) error {
	for pieces := json.NewDecoder(from); ; {
		var piece struct {
			Result struct {
				Blob []byte `json:"blob"`
			} `json:"result"`
			Error *struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		err := pieces.Decode(&piece)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case piece.Error != nil:
			return errors.New(piece.Error.Message)
		}
		if _, err := into.Write(piece.Result.Blob); err != nil {
			return err
		}
	}
}

// restore sets a plane back to a snapshot, as an operator does: everything that
// keeps what it has seen of the plane is stopped with it and started after it.
func (l *lab) restore(ctx context.Context, name, file string) error {
	p, err := l.withStore(name)
	if err != nil {
		return err
	}
	programs := l.restartedWith(p)
	for _, program := range slices.Backward(programs) {
		if err := l.processes.Stop(program); err != nil {
			return err
		}
	}
	store := l.layout.store(p.name)
	if err := os.RemoveAll(store); err != nil {
		return fmt.Errorf("failed to remove the store: %w", err)
	}
	output, err := exec.CommandContext(ctx, filepath.Join(l.spec.Bin, "etcd-restore"),
		"--snapshot="+file, "--data-dir="+store, "--name="+etcdName, "--peer-url="+l.plain(p.etcd+1, ""),
	).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	for _, program := range programs {
		if err := l.start(ctx, program); err != nil {
			return err
		}
	}
	return nil
}

// restartedWith lists the programs that do not outlive a plane's store, in the
// order of their start.
func (l *lab) restartedWith(p *plane) []string {
	programs := []string{p.store(), p.process("kube-apiserver"), p.process("kube-controller-manager")}
	switch {
	case p.isHub():
		programs = append(programs,
			"karmada-aggregated-apiserver", "karmada-webhook", "karmada-controller-manager", "karmada-scheduler")
		for _, other := range l.planes {
			if other.member != nil && other.member.Mode == spec.Pull {
				programs = append(programs, other.process("karmada-agent"))
			}
		}
	case p.member != nil && p.member.Mode == spec.Pull:
		programs = append(programs, p.process("karmada-agent"))
	case p.member != nil:
		programs = append(programs, "karmada-controller-manager")
	}
	return programs
}

func (l *lab) withStore(name string) (*plane, error) {
	for _, p := range l.planes {
		if p.name == name && p.etcd != 0 {
			return p, nil
		}
	}
	return nil, fmt.Errorf("there is no plane %s with an etcd of its own: say \"own_etcd\": true in the spec", name)
}
