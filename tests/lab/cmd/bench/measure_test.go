package main

import (
	"os"
	"testing"
	"time"
)

func TestPercentileIsTheNearestRank(t *testing.T) {
	sorted := make([]time.Duration, 200)
	for i := range sorted {
		sorted[i] = time.Duration(i + 1)
	}
	for percent, want := range map[int]time.Duration{50: 100, 99: 198, 100: 200, 0: 1} {
		if got := percentile(sorted, percent); got != want {
			t.Errorf("percentile %d is %d, want %d", percent, got, want)
		}
	}
	if got := percentile(sorted[:1], 99); got != 1 {
		t.Errorf("of one value it is %d", got)
	}
}

func TestTheClockOfThisProcessIsReadByItsPid(t *testing.T) {
	before, err := ownCPU()
	if err != nil {
		t.Fatal(err)
	}
	used, err := usageOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	after, err := ownCPU()
	if err != nil {
		t.Fatal(err)
	}
	if used.cpu < before || used.cpu > after {
		t.Errorf("%s is not between %s and %s", used.cpu, before, after)
	}
	if used.rss == 0 || used.peak < used.rss {
		t.Errorf("memory is %d, peak %d", used.rss, used.peak)
	}
}

func TestCallersAreNumbersAboveZero(t *testing.T) {
	for _, bad := range []string{"", "0", "x", "1,,2"} {
		if _, err := parseNumbers(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	if numbers, err := parseNumbers("1,16"); err != nil || len(numbers) != 2 {
		t.Errorf("%v, %v", numbers, err)
	}
}
