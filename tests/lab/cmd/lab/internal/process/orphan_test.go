package process

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// superviseEnv makes the test program a supervisor of one long sleep that prints
// the sleep's pid.
const superviseEnv = "POPCELL_LAB_TEST_SUPERVISE"

func TestMain(m *testing.M) {
	if directory := os.Getenv(superviseEnv); directory != "" {
		supervise(directory)
	}
	os.Exit(m.Run())
}

func supervise(directory string) {
	supervisor := New(func(Death) {})
	err := supervisor.Define(Definition{
		Name: "sleep", Program: "/bin/sleep", Args: []string{"600"}, Log: filepath.Join(directory, "log"),
	})
	if err == nil {
		err = supervisor.Start(context.Background(), "sleep")
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(supervisor.Status()[0].Pid)
	select {}
}

func TestNothingOutlivesAKilledSupervisor(t *testing.T) {
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), superviseEnv+"="+t.TempDir())
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("the supervisor said %q", line)
	}
	if !runs(pid) {
		t.Fatal("the program does not run, so the test says nothing")
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	for range 200 {
		if !runs(pid) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("process %d still runs", pid)
}

// runs is false for a process that is gone, and for one that has ended but was
// not reaped yet.
func runs(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(status), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}
