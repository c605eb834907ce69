package main

import (
	"fmt"
	"path/filepath"

	"popcell.dev/lab/cmd/lab/internal/process"
)

// etcdName is the name of the one member of each etcd.
const etcdName = "lab"

// defineEtcd is the store of the lab; API servers share it by prefix, but for
// those with a store of their own. It does not wait for the disk: a lab survives killed processes, not a crash of
// the machine.
func (l *lab) defineEtcd() error {
	var extra []string
	if l.spec.Hub != nil {
		extra = l.spec.Hub.ExtraFlags["etcd"]
	}
	return l.defineStore("etcd", portEtcdClient, l.layout.etcd(), extra)
}

// defineStore is one etcd of one member, whose peer port is the next.
func (l *lab) defineStore(name string, port int, dir string, extra []string) error {
	url := l.plain(port, "")
	return l.define(name, "etcd", l.healthy(url+"/health"), append([]string{
		"--data-dir=" + dir,
		"--listen-client-urls=" + url,
		"--listen-peer-urls=" + l.plain(port+1, ""),
		"--unsafe-no-fsync",
		"--name=" + etcdName,
	}, extra...))
}

func (l *lab) defineAPIServer(p *plane) error {
	if p.etcd != 0 {
		if err := l.defineStore(p.store(), p.etcd, l.layout.store(p.name), nil); err != nil {
			return err
		}
	}
	flags := []string{
		"--etcd-servers=" + l.etcdURLOf(p),
		"--etcd-prefix=/" + p.name,
		"--bind-address=" + l.address,
		"--advertise-address=" + l.address,
		fmt.Sprintf("--secure-port=%d", p.port),
		"--endpoint-reconciler-type=none",
		"--authorization-mode=RBAC",
		"--disable-admission-plugins=StorageObjectInUseProtection,ServiceAccount",
		// Each plane is an issuer of its own with keys of its own, and serves them below the issuer's URL.
		"--service-account-issuer=" + l.url(p.port),
		"--service-account-key-file=" + l.layout.tokenKeys(p.name, "pub"),
		"--service-account-signing-key-file=" + l.layout.tokenKeys(p.name, "key"),
		"--service-cluster-ip-range=10.96.0.0/16",
		"--tls-cert-file=" + l.layout.pki("tls.crt"),
		"--tls-private-key-file=" + l.layout.pki("tls.key"),
		"--client-ca-file=" + l.layout.pki("ca.crt"),
		"--proxy-client-cert-file=" + l.layout.pki("front-proxy.crt"),
		"--proxy-client-key-file=" + l.layout.pki("front-proxy.key"),
		"--requestheader-client-ca-file=" + l.layout.pki("ca.crt"),
		"--requestheader-allowed-names=" + frontProxyUser,
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
	}
	if p.member != nil {
		// Karmada knows bearer tokens only for Push members.
		flags = append(flags, "--token-auth-file="+l.layout.pki("tokens.csv"))
	}
	flags = append(flags, p.flags["kube-apiserver"]...)
	return l.define(p.process("kube-apiserver"), "kube-apiserver", l.healthy(l.url(p.port)+"/readyz"), flags)
}

// defineManager is kube-controller-manager with the two controllers that objects
// cannot do without: deletion of namespaces and of dependents.
func (l *lab) defineManager(p *plane) error {
	kubeconfig := l.layout.kubeconfig(p.name)
	flags := []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=" + l.address,
		fmt.Sprintf("--secure-port=%d", p.manager),
		"--tls-cert-file=" + l.layout.pki("tls.crt"),
		"--tls-private-key-file=" + l.layout.pki("tls.key"),
		"--controllers=namespace-controller,garbage-collector-controller",
		"--leader-elect=false",
		"--root-ca-file=" + l.layout.pki("ca.crt"),
		"--service-account-private-key-file=" + l.layout.tokenKeys(p.name, "key"),
		"--use-service-account-credentials=false",
		"--kube-api-qps=200",
		"--kube-api-burst=400",
	}
	flags = append(flags, p.flags["kube-controller-manager"]...)
	ready := l.healthy(l.url(p.manager) + "/healthz")
	return l.define(p.process("kube-controller-manager"), "kube-controller-manager", ready, flags)
}

func (l *lab) define(name, program string, ready probe, flags []string) error {
	return l.processes.Define(process.Definition{
		Name:    name,
		Program: filepath.Join(l.spec.Bin, program),
		Args:    flags,
		Log:     l.layout.log(name),
		Ready:   ready,
	})
}

func (l *lab) etcdURL() string { return l.plain(portEtcdClient, "") }

// etcdURLOf is the etcd that holds a plane.
func (l *lab) etcdURLOf(p *plane) string {
	if p.etcd == 0 {
		return l.etcdURL()
	}
	return l.plain(p.etcd, "")
}

func (l *lab) plain(port int, path string) string {
	return fmt.Sprintf("http://%s:%d%s", l.address, port, path)
}

func (l *lab) url(port int) string { return fmt.Sprintf("https://%s:%d", l.address, port) }
