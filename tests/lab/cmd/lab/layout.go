package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"popcell.dev/lab/cmd/lab/internal/spec"
)

// Ports are fixed; the address differs between labs. They stay below the range
// that outgoing connections use (32768 and above) and off the well-known ports
// of the programs, which others may hold on 0.0.0.0.
const (
	portEtcdClient       = 20379
	portEtcdPeer         = 20380
	portHubEtcd          = 20381
	portHub              = 20443
	portHubManager       = 20257
	portAggregated       = 20543
	portKarmadaWebhook   = 20643
	portWebhookProbe     = 20644
	portControllersProbe = 20357
	portSchedulerProbe   = 20351
	portMembers          = 21000
	portExtraPlanes      = 24000
	portsPerPlane        = 10
)

const hubName = "hub"

// plane is one API server with its controllers.
type plane struct {
	name    string
	port    int
	manager int
	// agentProbe is the probe port of karmada-agent, of members only.
	agentProbe int
	member     *spec.Member
	flags      spec.Flags
	crds       bool
	// etcd is the port of an etcd of its own, whose peer port is the next; zero
	// for planes that share one.
	etcd int
}

func (p *plane) isHub() bool { return p.name == hubName }

// process names a program of this plane; those of the hub carry no suffix.
func (p *plane) process(program string) string {
	if p.isHub() {
		return program
	}
	return program + "-" + p.name
}

// store names the etcd of a plane that has one of its own.
func (p *plane) store() string { return "etcd-" + p.name }

// planesOf lists every API server of the spec, the hub first.
func planesOf(s *spec.Spec) []*plane {
	var planes []*plane
	if s.Hub != nil {
		planes = append(planes, &plane{
			name: hubName, port: portHub, manager: portHubManager, flags: s.Hub.ExtraFlags, crds: true,
			etcd: ownEtcd(s.Hub.OwnEtcd, portHubEtcd),
		})
	}
	for i := range s.Members {
		base := portMembers + i*portsPerPlane
		planes = append(planes, &plane{
			name: s.Members[i].Name, port: base, manager: base + 1, agentProbe: base + 2,
			member: &s.Members[i], flags: s.Members[i].ExtraFlags, crds: true,
			etcd: ownEtcd(s.Members[i].OwnEtcd, base+3),
		})
	}
	for i, extra := range s.ExtraPlanes {
		base := portExtraPlanes + i*portsPerPlane
		planes = append(planes, &plane{
			name: extra.Name, port: base, manager: base + 1, flags: extra.ExtraFlags, crds: extra.CRDs,
			etcd: ownEtcd(extra.OwnEtcd, base+3),
		})
	}
	return planes
}

func ownEtcd(own bool, port int) int {
	if own {
		return port
	}
	return 0
}

// portsOf lists every port that the lab will listen on.
func portsOf(planes []*plane) []int {
	ports := []int{portEtcdClient, portEtcdPeer}
	for _, p := range planes {
		ports = append(ports, p.port, p.manager)
		if p.etcd != 0 {
			ports = append(ports, p.etcd, p.etcd+1)
		}
		if p.isHub() {
			ports = append(ports, portAggregated, portKarmadaWebhook, portWebhookProbe, portControllersProbe, portSchedulerProbe)
		}
		if p.member != nil {
			ports = append(ports, p.agentProbe)
		}
	}
	return ports
}

// layout is where things lie in the work directory.
type layout struct{ dir string }

func (l layout) log(process string) string      { return filepath.Join(l.dir, "logs", process+".log") }
func (l layout) pki(file string) string         { return filepath.Join(l.dir, "pki", file) }
func (l layout) kubeconfig(plane string) string { return filepath.Join(l.dir, "kubeconfig", plane) }
func (l layout) etcd() string                   { return filepath.Join(l.dir, "etcd") }
func (l layout) store(plane string) string      { return filepath.Join(l.dir, "stores", plane) }
func (l layout) ready() string                  { return filepath.Join(l.dir, "lab.json") }
func (l layout) pid() string                    { return filepath.Join(l.dir, "lab.pid") }

// tokenKeys is where the public keys ("pub") or the private key ("key") of a plane's service account tokens are. A plane
// reads them when it starts.
func (l layout) tokenKeys(plane, half string) string { return l.pki("sa-" + plane + "." + half) }

// lock takes the work directory for this process. The kernel gives it back when
// the process ends, so no stale lock can remain.
func (l layout) lock() (*os.File, error) {
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return nil, fmt.Errorf("failed to make the work directory: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(l.dir, "lab.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("failed to lock the work directory: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("another lab runs in %s: %w", l.dir, err), file.Close())
	}
	return file, nil
}

// prepare makes the directories, and removes what an earlier lab left in them.
func (l layout) prepare() error {
	for _, file := range []string{l.ready(), l.pid()} {
		if err := os.RemoveAll(file); err != nil {
			return fmt.Errorf("failed to remove what an earlier lab left: %w", err)
		}
	}
	for _, name := range []string{"logs", "pki", "kubeconfig", "etcd", "stores"} {
		directory := filepath.Join(l.dir, name)
		if err := os.RemoveAll(directory); err != nil {
			return fmt.Errorf("failed to remove what an earlier lab left: %w", err)
		}
		if err := os.MkdirAll(directory, 0o700); err != nil {
			return fmt.Errorf("failed to make a directory: %w", err)
		}
	}
	return nil
}
