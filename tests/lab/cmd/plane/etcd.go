package main

import (
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/embed"
)

// newEtcdCommand is a single-member etcd on fixed URLs. It takes the few flags
// of etcd that the lab needs, spelled as etcd spells them.
func newEtcdCommand() *cobra.Command {
	var dataDir, clientURL, peerURL string
	var unsafeNoFsync bool
	command := &cobra.Command{
		Use:           "etcd",
		Short:         "A single etcd member",
		SilenceUsage:  true,
		SilenceErrors: false,
		Args:          cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			config, err := etcdConfig(dataDir, clientURL, peerURL)
			if err != nil {
				return err
			}
			config.UnsafeNoFsync = unsafeNoFsync
			return serveEtcd(config)
		},
	}
	flags := command.Flags()
	flags.StringVar(&dataDir, "data-dir", "", "directory of the data")
	flags.StringVar(&clientURL, "listen-client-urls", "http://127.0.0.1:2379", "URL to serve clients on")
	flags.StringVar(&peerURL, "listen-peer-urls", "http://127.0.0.1:2380", "URL to serve peers on")
	flags.BoolVar(&unsafeNoFsync, "unsafe-no-fsync", false, "do not wait for the disk; survives a killed process, not a crashed machine")
	return command
}

func etcdConfig(dataDir, clientURL, peerURL string) (*embed.Config, error) {
	if dataDir == "" {
		return nil, fmt.Errorf("--data-dir is required")
	}
	client, err := url.Parse(clientURL)
	if err != nil {
		return nil, fmt.Errorf("failed to read --listen-client-urls: %w", err)
	}
	peer, err := url.Parse(peerURL)
	if err != nil {
		return nil, fmt.Errorf("failed to read --listen-peer-urls: %w", err)
	}
	config := embed.NewConfig()
	config.Dir = dataDir
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.LogLevel = "warn"
	config.LogOutputs = []string{"stderr"}
	return config, nil
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
