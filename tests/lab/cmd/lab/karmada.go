package main

import (
	"fmt"
	"path/filepath"
)

// defineKarmada defines the four programs of the hub's Karmada control plane.
func (l *lab) defineKarmada() error {
	kubeconfig := l.layout.kubeconfig(hubName)
	for _, each := range []struct {
		program string
		ready   probe
		flags   []string
	}{
		{"karmada-aggregated-apiserver", l.healthy(l.url(portAggregated) + "/readyz"), []string{
			"--kubeconfig=" + kubeconfig,
			"--authentication-kubeconfig=" + kubeconfig,
			"--authorization-kubeconfig=" + kubeconfig,
			"--etcd-servers=" + l.etcdURLOf(l.planes[0]),
			"--bind-address=" + l.address,
			fmt.Sprintf("--secure-port=%d", portAggregated),
			"--tls-cert-file=" + l.layout.pki("tls.crt"),
			"--tls-private-key-file=" + l.layout.pki("tls.key"),
		}},
		{"karmada-webhook", l.healthy(l.url(portKarmadaWebhook) + "/readyz/"), []string{
			"--kubeconfig=" + kubeconfig,
			"--bind-address=" + l.address,
			fmt.Sprintf("--secure-port=%d", portKarmadaWebhook),
			"--cert-dir=" + filepath.Dir(l.layout.pki("tls.crt")),
			"--metrics-bind-address=0",
			fmt.Sprintf("--health-probe-bind-address=%s:%d", l.address, portWebhookProbe),
			"--allow-no-execute-taint-policy=true",
		}},
		{"karmada-controller-manager", l.healthy(l.plain(portControllersProbe, "/healthz")), []string{
			"--kubeconfig=" + kubeconfig,
			"--leader-elect=false",
			"--metrics-bind-address=0",
			fmt.Sprintf("--health-probe-bind-address=%s:%d", l.address, portControllersProbe),
			// The default of 1000 s would hold a test that much longer after a fault.
			"--rate-limiter-max-delay=5s",
		}},
		{"karmada-scheduler", l.healthy(l.plain(portSchedulerProbe, "/healthz")), []string{
			"--kubeconfig=" + kubeconfig,
			"--leader-elect=false",
			"--metrics-bind-address=0",
			fmt.Sprintf("--health-probe-bind-address=%s:%d", l.address, portSchedulerProbe),
			"--rate-limiter-max-delay=5s",
		}},
	} {
		flags := append(each.flags, l.spec.Hub.ExtraFlags[each.program]...)
		if err := l.define(each.program, each.program, each.ready, flags); err != nil {
			return err
		}
	}
	return nil
}

// defineAgent is the agent of a Pull member. Secrets are not reported: that
// would need the token controller in the member.
func (l *lab) defineAgent(p *plane) error {
	flags := []string{
		"--karmada-kubeconfig=" + l.layout.kubeconfig(hubName),
		"--karmada-context=" + karmadaContext,
		"--kubeconfig=" + l.layout.kubeconfig(p.name),
		"--cluster-name=" + p.name,
		"--cluster-api-endpoint=" + l.url(p.port),
		"--report-secrets=None",
		"--cluster-namespace=" + clusterNamespace,
		"--leader-elect=false",
		"--metrics-bind-address=0",
		fmt.Sprintf("--health-probe-bind-address=%s:%d", l.address, p.agentProbe),
		"--rate-limiter-max-delay=5s",
	}
	flags = append(flags, p.flags["karmada-agent"]...)
	return l.define(p.process("karmada-agent"), "karmada-agent", l.healthy(l.plain(p.agentProbe, "/healthz")), flags)
}
