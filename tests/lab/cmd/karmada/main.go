// Command karmada is Karmada's agent, aggregated API server, controller manager,
// scheduler, webhook, karmadactl, and kubectl, which karmadactl is made of, in one
// program; the name it is called by (or its first argument) selects which. Each
// entry does what the main function of the same command does upstream
// (cmd/<name>/main.go).
//
// One program instead of seven shares the linked libraries: one link of about
// 100 MB instead of six.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	_ "k8s.io/client-go/plugin/pkg/client/auth/oidc"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"
	"k8s.io/klog/v2"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	controllerruntime "sigs.k8s.io/controller-runtime"

	agent "github.com/karmada-io/karmada/cmd/agent/app"
	aggregatedapiserver "github.com/karmada-io/karmada/cmd/aggregated-apiserver/app"
	controllermanager "github.com/karmada-io/karmada/cmd/controller-manager/app"
	scheduler "github.com/karmada-io/karmada/cmd/scheduler/app"
	webhook "github.com/karmada-io/karmada/cmd/webhook/app"
	"github.com/karmada-io/karmada/pkg/karmadactl"
)

var servers = map[string]func(context.Context) *cobra.Command{
	"karmada-agent": func(ctx context.Context) *cobra.Command {
		controllerruntime.SetLogger(klog.Background())
		return agent.NewAgentCommand(ctx)
	},
	"karmada-aggregated-apiserver": aggregatedapiserver.NewAggregatedApiserverCommand,
	"karmada-controller-manager":   controllermanager.NewControllerManagerCommand,
	"karmada-scheduler": func(ctx context.Context) *cobra.Command {
		return scheduler.NewSchedulerCommand(ctx)
	},
	"karmada-webhook": webhook.NewWebhookCommand,
}

func main() {
	name := filepath.Base(os.Args[0])
	if name == "karmada" && len(os.Args) > 1 {
		name = os.Args[1]
		os.Args = os.Args[1:]
	}
	if newCommand, found := servers[name]; found {
		code := cli.Run(newCommand(controllerruntime.SetupSignalHandler()))
		logs.FlushLogs()
		os.Exit(code)
	}
	if name == "karmadactl" {
		if err := cli.RunNoErrOutput(karmadactl.NewKarmadaCtlCommand("karmadactl", "karmadactl")); err != nil {
			util.CheckErr(err)
		}
		return
	}
	if name == "kubectl" {
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			util.CheckErr(err)
		}
		return
	}
	fmt.Fprintf(os.Stderr, "usage: karmada %s|karmadactl|kubectl [flags]\n", strings.Join(serverNames(), "|"))
	os.Exit(2)
}

func serverNames() []string {
	names := make([]string, 0, len(servers))
	for name := range servers {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
