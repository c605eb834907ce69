// Command karmada-example-webhook is Karmada's example interpreter webhook
// (examples/customresourceinterpreter/webhook) with one difference: its metrics
// endpoint, which has no flag and would take 0.0.0.0:8080, is off, so that
// several can run on one machine.
//
// It stays a program of its own, because benchmarks compare its memory.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	"k8s.io/klog/v2"
	controllerruntime "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/karmada-io/karmada/examples/customresourceinterpreter/webhook/app"
)

func main() {
	metricsserver.DefaultBindAddress = "0"
	ctx := controllerruntime.SetupSignalHandler()
	controllerruntime.SetLogger(klog.Background())
	os.Exit(cli.Run(app.NewWebhookCommand(ctx)))
}
