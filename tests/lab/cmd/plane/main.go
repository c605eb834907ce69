// Command plane is etcd, kube-apiserver, kube-controller-manager and
// kube-scheduler in one program; the name it is called by (or its first
// argument) selects which.
//
// One program instead of four shares the linked Kubernetes libraries: a third
// of the link time, of the disk space and of the page cache.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

var commands = map[string]func() *cobra.Command{
	"etcd":                    newEtcdCommand,
	"etcd-restore":            newRestoreCommand,
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	"kube-scheduler":          newSchedulerCommand,
}

func newSchedulerCommand() *cobra.Command { return scheduler.NewSchedulerCommand() }

func main() {
	newCommand, found := commands[filepath.Base(os.Args[0])]
	if !found && len(os.Args) > 1 {
		if newCommand, found = commands[os.Args[1]]; found {
			os.Args = os.Args[1:]
		}
	}
	if !found {
		fmt.Fprintln(os.Stderr, "usage: plane etcd|kube-apiserver|kube-controller-manager|kube-scheduler [flags]")
		os.Exit(2)
	}
	os.Exit(cli.Run(newCommand()))
}
