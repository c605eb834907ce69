package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// usage is what a process has used so far.
type usage struct {
	// cpu is user and system time of all its threads, ended ones too.
	cpu time.Duration
	// rss and peak are resident memory in KiB.
	rss, peak int64
}

// usageOf reads the counters of another process. Its CPU clock counts in
// nanoseconds, where /proc/PID/stat counts in hundredths of a second.
func usageOf(pid int) (*usage, error) {
	cpu, err := clock(processClock(pid))
	if err != nil {
		return nil, fmt.Errorf("failed to read the CPU time of process %d: %w", pid, err)
	}
	used := &usage{cpu: cpu}
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return nil, fmt.Errorf("failed to read the memory of process %d: %w", pid, err)
	}
	defer file.Close()
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		name, value, _ := strings.Cut(scanner.Text(), ":")
		switch name {
		case "VmRSS":
			used.rss = kib(value)
		case "VmHWM":
			used.peak = kib(value)
		}
	}
	return used, scanner.Err()
}

func kib(value string) int64 {
	number, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(value, "kB")), 10, 64)
	return number
}

func ownCPU() (time.Duration, error) {
	cpu, err := clock(unix.CLOCK_PROCESS_CPUTIME_ID)
	if err != nil {
		return 0, fmt.Errorf("failed to read the CPU time of this process: %w", err)
	}
	return cpu, nil
}

// processClock is clock_getcpuclockid(3): the complement of the pid, shifted,
// with the kind of clock (2, the scheduler's) in the low bits.
func processClock(pid int) int32 { return int32(^pid<<3 | 2) }

func clock(id int32) (time.Duration, error) {
	var value unix.Timespec
	if err := unix.ClockGettime(id, &value); err != nil {
		return 0, err
	}
	return time.Duration(value.Nano()), nil
}
