package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	etcdflags "go.etcd.io/etcd/pkg/v3/flags"
	"go.etcd.io/etcd/server/v3/embed"
)

// newEtcdCommand is an etcd of one member with etcd's own flags. Of the URLs it
// reads --listen-client-urls and --listen-peer-urls, and advertises the same.
func newEtcdCommand() *cobra.Command {
	config := embed.NewConfig()
	// etcd's main function sets it; zero would log every request.
	config.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration
	// Several other defaults exist only as defaults of the flags.
	own := flag.NewFlagSet("etcd", flag.ContinueOnError)
	config.AddFlags(own)
	config.LogLevel = "warn"
	command := &cobra.Command{
		Use:          "etcd",
		Short:        "A single etcd member",
		SilenceUsage: true,
		Args:         cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			complete(config, own)
			return serveEtcd(config)
		},
	}
	command.Flags().AddGoFlagSet(own)
	return command
}

// complete does what etcd's main function does with flags that are not bound to
// the configuration.
func complete(config *embed.Config, flags *flag.FlagSet) {
	config.ListenClientUrls = etcdflags.UniqueURLsFromFlag(flags, "listen-client-urls")
	config.AdvertiseClientUrls = config.ListenClientUrls
	config.ListenPeerUrls = etcdflags.UniqueURLsFromFlag(flags, "listen-peer-urls")
	config.AdvertisePeerUrls = config.ListenPeerUrls
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.LogOutputs = []string{"stderr"}
}

func serveEtcd(config *embed.Config) error {
	server, err := embed.StartEtcd(config)
	if err != nil {
		return fmt.Errorf("failed to start etcd: %w", err)
	}
	defer server.Close()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	select {
	case <-stop:
		return nil
	case err := <-server.Err():
		return fmt.Errorf("etcd failed: %w", err)
	}
}
