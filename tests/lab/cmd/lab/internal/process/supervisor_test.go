package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// define adds a shell script as a program of a new supervisor that is closed
// when the test ends.
func define(t *testing.T, script string, ready func(context.Context) error) (*Supervisor, chan Death) {
	t.Helper()
	deaths := make(chan Death, 8)
	supervisor := New(func(death Death) { deaths <- death })
	t.Cleanup(supervisor.Close)
	err := supervisor.Define(Definition{
		Name:    "program",
		Program: "/bin/sh",
		Args:    []string{"-c", script},
		Log:     filepath.Join(t.TempDir(), "log"),
		Ready:   ready,
	})
	if err != nil {
		t.Fatal(err)
	}
	return supervisor, deaths
}

func TestStartWaitsForReadiness(t *testing.T) {
	flag := filepath.Join(t.TempDir(), "flag")
	exists := func(context.Context) error {
		_, err := os.Stat(flag)
		return err
	}
	supervisor, _ := define(t, "touch "+flag+"; exec sleep 600", exists)
	if err := supervisor.Start(context.Background(), "program"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(flag); err != nil {
		t.Error("started before it was ready")
	}
	if state := supervisor.Status()[0]; !state.Running || state.Starts != 1 || state.Pid == 0 {
		t.Errorf("state is %+v", state)
	}
}

func TestAProgramThatDiesBeforeItIsReadyIsReportedWithItsLog(t *testing.T) {
	never := func(context.Context) error { return errors.New("not yet") }
	supervisor, deaths := define(t, "echo no such flag; exit 3", never)
	err := supervisor.Start(context.Background(), "program")
	var death *Death
	if !errors.As(err, &death) || !strings.Contains(death.Log, "no such flag") {
		t.Fatalf("error is %v", err)
	}
	if reported := <-deaths; !strings.Contains(reported.Message, "exit status 3") {
		t.Errorf("reported %+v", reported)
	}
}

func TestAProgramThatWeEndIsNoDeath(t *testing.T) {
	supervisor, deaths := define(t, "exec sleep 600", nil)
	for _, end := range []func(string) error{supervisor.Stop, supervisor.Kill} {
		if err := supervisor.Start(context.Background(), "program"); err != nil {
			t.Fatal(err)
		}
		if err := end("program"); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case death := <-deaths:
		t.Errorf("reported %+v", death)
	default:
	}
}

func TestAFrozenProgramCanBeStopped(t *testing.T) {
	supervisor, _ := define(t, "exec sleep 600", nil)
	if err := supervisor.Start(context.Background(), "program"); err != nil {
		t.Fatal(err)
	}
	if err := supervisor.Signal("program", syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := supervisor.Stop("program"); err != nil {
		t.Fatal(err)
	}
	if supervisor.Status()[0].Running {
		t.Error("it still runs")
	}
}

func TestMisuseIsAnError(t *testing.T) {
	supervisor, _ := define(t, "exec sleep 600", nil)
	if err := supervisor.Start(context.Background(), "other"); err == nil {
		t.Error("an unknown program was started")
	}
	if err := supervisor.Signal("program", syscall.SIGSTOP); err == nil {
		t.Error("a program that does not run was signalled")
	}
	if err := supervisor.Start(context.Background(), "program"); err != nil {
		t.Fatal(err)
	}
	if err := supervisor.Start(context.Background(), "program"); err == nil {
		t.Error("a running program was started")
	}
	if err := supervisor.Define(Definition{Name: "program"}); err == nil {
		t.Error("a name was given twice")
	}
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	never := func(context.Context) error { return errors.New("not yet") }
	supervisor, _ := define(t, "exec sleep 600", never)
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if err := supervisor.Start(ctx, "program"); err == nil || !strings.Contains(err.Error(), "not yet") {
		t.Errorf("error is %v", err)
	}
}

func TestNothingStartsAfterClose(t *testing.T) {
	supervisor, _ := define(t, "exec sleep 600", nil)
	supervisor.Close()
	if err := supervisor.Start(context.Background(), "program"); err == nil {
		t.Error("it started")
	}
}
