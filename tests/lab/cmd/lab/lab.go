package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"popcell.dev/lab/cmd/lab/internal/address"
	"popcell.dev/lab/cmd/lab/internal/process"
	"popcell.dev/lab/cmd/lab/internal/spec"
	"popcell.dev/lab/internal/pki"
)

// lab is one running set of control planes.
type lab struct {
	spec      *spec.Spec
	layout    layout
	planes    []*plane
	events    *events
	processes *process.Supervisor

	claim     *address.Claim
	lock      *os.File
	address   string
	authority *pki.Authority
	admin     pki.Pair
	pushToken string
	http      *http.Client
}

// newLab claims an address and prepares the work directory; nothing runs yet.
// fail is called when a program ends by itself.
func newLab(s *spec.Spec, events *events, fail func(process.Death)) (*lab, error) {
	l := &lab{spec: s, layout: layout{s.Dir}, planes: planesOf(s), events: events, processes: process.New(fail)}
	claim, err := address.Take(s.Address, portsOf(l.planes))
	if err != nil {
		return nil, err
	}
	l.claim, l.address = claim, claim.IP
	if err := l.prepare(); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

func (l *lab) prepare() error {
	var err error
	if l.lock, err = l.layout.lock(); err != nil {
		return err
	}
	if err := l.layout.prepare(); err != nil {
		return err
	}
	pid := strconv.Itoa(os.Getpid()) + "\n"
	if err := os.WriteFile(l.layout.pid(), []byte(pid), 0o644); err != nil {
		return fmt.Errorf("failed to write the pid: %w", err)
	}
	if err := l.issueCertificates(); err != nil {
		return err
	}
	if err := l.writeAdminKubeconfigs(); err != nil {
		return err
	}
	if l.http, err = l.newHTTPClient(); err != nil {
		return err
	}
	return l.defineAll()
}

func (l *lab) defineAll() error {
	if err := l.defineEtcd(); err != nil {
		return err
	}
	for _, p := range l.planes {
		if err := errors.Join(l.defineAPIServer(p), l.defineManager(p)); err != nil {
			return err
		}
		if p.member != nil && p.member.Mode == spec.Pull {
			if err := l.defineAgent(p); err != nil {
				return err
			}
		}
	}
	if l.spec.Hub == nil {
		return nil
	}
	return l.defineKarmada()
}

// up starts everything, in an order that lets each program find at its start
// what it would otherwise discover only half a minute later: custom resources
// before the garbage collector and Karmada's detector.
func (l *lab) up(ctx context.Context) error {
	crds, err := readCRDs(l.spec.CRDDirs)
	if err != nil {
		return err
	}
	if err := l.start(ctx, "etcd"); err != nil {
		return err
	}
	group, grouped := errgroup.WithContext(ctx)
	for _, p := range l.planes {
		group.Go(func() error { return l.upPlane(grouped, p, crds) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if l.spec.Hub == nil {
		return nil
	}
	return l.upKarmada(ctx, crds)
}

func (l *lab) upPlane(ctx context.Context, p *plane, crds []*unstructured.Unstructured) error {
	if p.etcd != 0 {
		if err := l.start(ctx, p.store()); err != nil {
			return err
		}
	}
	if err := l.start(ctx, p.process("kube-apiserver")); err != nil {
		return err
	}
	var err error
	switch {
	case p.isHub():
		err = l.installKarmada(ctx, p, crds)
	case p.crds:
		err = l.installCRDs(ctx, p, crds)
	}
	if err != nil {
		return err
	}
	return l.start(ctx, p.process("kube-controller-manager"))
}

func (l *lab) upKarmada(ctx context.Context, crds []*unstructured.Unstructured) error {
	hub := l.planes[0]
	group, ctx := errgroup.WithContext(ctx)
	for _, program := range []string{"karmada-controller-manager", "karmada-scheduler"} {
		group.Go(func() error { return l.start(ctx, program) })
	}
	for _, p := range l.planes {
		if p.member != nil {
			group.Go(func() error { return l.join(ctx, hub, p, crds) })
		}
	}
	return group.Wait()
}

func (l *lab) start(ctx context.Context, name string) error {
	if err := l.processes.Start(ctx, name); err != nil {
		return err
	}
	l.events.step("%s is ready", name)
	return nil
}

// ready describes the running lab.
func (l *lab) ready() readyEvent {
	ready := readyEvent{
		Event:      "ready",
		Address:    l.address,
		Dir:        l.spec.Dir,
		Bin:        l.spec.Bin,
		Members:    map[string]planeInfo{},
		Planes:     map[string]planeInfo{},
		CAFile:     l.layout.pki("ca.crt"),
		FrontProxy: keyPairInfo{l.layout.pki("front-proxy.crt"), l.layout.pki("front-proxy.key")},
		EtcdURL:    l.etcdURL(),
		Pids:       map[string]int{},
		Supervisor: os.Getpid(),
		Seconds:    l.events.seconds(),
	}
	for _, p := range l.planes {
		info := planeInfo{Kubeconfig: l.layout.kubeconfig(p.name), URL: l.url(p.port)}
		switch {
		case p.isHub():
			ready.Hub = &info
		case p.member != nil:
			info.Mode = string(p.member.Mode)
			ready.Members[p.name] = info
		default:
			ready.Planes[p.name] = info
		}
	}
	for _, state := range l.processes.Status() {
		if state.Running {
			ready.Pids[state.Name] = state.Pid
		}
	}
	return ready
}

// close ends every program and gives address and work directory up.
func (l *lab) close() error {
	l.processes.Close()
	err := l.claim.Release()
	if l.lock == nil {
		return err
	}
	return errors.Join(err, os.RemoveAll(l.layout.ready()), os.RemoveAll(l.layout.pid()), l.lock.Close())
}
