package main

import (
	"slices"
	"testing"

	"popcell.dev/lab/cmd/lab/internal/address"
	"popcell.dev/lab/cmd/lab/internal/spec"
)

func bigSpec() *spec.Spec {
	s := &spec.Spec{Hub: &spec.Hub{}}
	for i := range 20 {
		name := string(rune('a' + i))
		mode := spec.Push
		if i%2 == 1 {
			mode = spec.Pull
		}
		s.Members = append(s.Members, spec.Member{Name: "member-" + name, Mode: mode})
		s.ExtraPlanes = append(s.ExtraPlanes, spec.Plane{Name: "plane-" + name})
	}
	return s
}

func TestNoPortIsUsedTwiceAndNoneIsEphemeral(t *testing.T) {
	ports := append(portsOf(planesOf(bigSpec())), address.GuardPort)
	slices.Sort(ports)
	if distinct := slices.Compact(slices.Clone(ports)); len(distinct) != len(ports) {
		t.Errorf("a port is used twice: %v", ports)
	}
	if highest := ports[len(ports)-1]; highest >= 32768 {
		t.Errorf("port %d is in the range of outgoing connections", highest)
	}
}

func TestProgramsOfTheHubCarryNoSuffix(t *testing.T) {
	planes := planesOf(bigSpec())
	if name := planes[0].process("kube-apiserver"); name != "kube-apiserver" {
		t.Errorf("the hub's is %s", name)
	}
	if name := planes[1].process("kube-apiserver"); name != "kube-apiserver-member-a" {
		t.Errorf("a member's is %s", name)
	}
}

func TestCRDsGoToTheHubToMembersAndWhereAsked(t *testing.T) {
	s := bigSpec()
	s.ExtraPlanes[1].CRDs = true
	for _, p := range planesOf(s) {
		want := p.isHub() || p.member != nil || p.name == "plane-b"
		if p.crds != want {
			t.Errorf("%s: %v", p.name, p.crds)
		}
	}
}

func TestAWorkDirectoryBelongsToOneLab(t *testing.T) {
	l := layout{t.TempDir()}
	first, err := l.lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.lock(); err == nil {
		t.Error("it was locked twice")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := l.lock()
	if err != nil {
		t.Fatalf("it stays locked: %v", err)
	}
	_ = second.Close()
}
