package main

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"popcell.dev/lab/internal/pki"
)

const (
	// karmadaContext is the context name that Karmada's own manifests use.
	karmadaContext = "karmada-apiserver"
	adminUser      = "system:admin"
	adminGroup     = "system:masters"
	frontProxyUser = "front-proxy-client"
	pushUser       = "karmada-push"
)

// serverNames are what the one serving certificate of a lab is valid for.
func serverNames(address string) []string {
	return []string{
		address, "127.0.0.1", "localhost",
		"karmada-apiserver.karmada-system.svc", "karmada-apiserver.karmada-system.svc.cluster.local",
		"karmada-aggregated-apiserver.karmada-system.svc",
		"karmada-webhook.karmada-system.svc",
		"kubernetes.default.svc",
	}
}

// issueCertificates fills the pki directory and keeps the authority for users
// that are asked for later.
func (l *lab) issueCertificates() error {
	authority, own, err := pki.NewAuthority("popcell lab " + l.address)
	if err != nil {
		return err
	}
	l.authority = authority
	if err := own.Write(l.layout.pki("ca.crt"), l.layout.pki("ca.key")); err != nil {
		return err
	}
	server, err := authority.Server(serverNames(l.address)...)
	if err != nil {
		return err
	}
	// karmada-webhook looks for tls.crt and tls.key in its directory.
	if err := server.Write(l.layout.pki("tls.crt"), l.layout.pki("tls.key")); err != nil {
		return err
	}
	proxy, err := authority.Client(frontProxyUser)
	if err != nil {
		return err
	}
	if err := proxy.Write(l.layout.pki("front-proxy.crt"), l.layout.pki("front-proxy.key")); err != nil {
		return err
	}
	if l.admin, err = authority.Client(adminUser, adminGroup); err != nil {
		return err
	}
	secrets := map[string][]byte{}
	for _, p := range l.planes {
		public, private, err := pki.ServiceAccountKeys()
		if err != nil {
			return err
		}
		secrets[l.layout.tokenKeys(p.name, "pub")] = public
		secrets[l.layout.tokenKeys(p.name, "key")] = private
	}
	token := make([]byte, 16)
	if _, err := rand.Read(token); err != nil {
		return fmt.Errorf("failed to make a token: %w", err)
	}
	l.pushToken = hex.EncodeToString(token)
	secrets[l.layout.pki("tokens.csv")] = fmt.Appendf(nil, "%s,%s,%s,%q\n", l.pushToken, pushUser, pushUser, adminGroup)
	for file, content := range secrets {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			return fmt.Errorf("failed to write %s: %w", filepath.Base(file), err)
		}
	}
	return nil
}

// writeAdminKubeconfigs writes one kubeconfig per plane.
func (l *lab) writeAdminKubeconfigs() error {
	for _, p := range l.planes {
		if err := l.writeKubeconfig(l.layout.kubeconfig(p.name), p, adminUser, l.admin); err != nil {
			return err
		}
	}
	return nil
}

// addUser makes a kubeconfig per plane for a user with a client certificate of
// its own; the same user exists on all of them.
func (l *lab) addUser(user string, groups []string) (map[string]string, error) {
	pair, err := l.authority.Client(user, groups...)
	if err != nil {
		return nil, err
	}
	// A colon, frequent in names of users, would cut a KUBECONFIG list.
	directory := filepath.Join(l.layout.dir, "kubeconfig", "users", url.QueryEscape(user))
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, fmt.Errorf("failed to make a directory: %w", err)
	}
	files := map[string]string{}
	for _, p := range l.planes {
		files[p.name] = filepath.Join(directory, p.name)
		if err := l.writeKubeconfig(files[p.name], p, user, pair); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// addServer signs a serving certificate for the names and answers its files.
func (l *lab) addServer(name string, names []string) (certFile, keyFile string, err error) {
	pair, err := l.authority.Server(names...)
	if err != nil {
		return "", "", err
	}
	directory := l.layout.pki(url.QueryEscape(name))
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return "", "", fmt.Errorf("failed to make a directory: %w", err)
	}
	certFile, keyFile = filepath.Join(directory, "tls.crt"), filepath.Join(directory, "tls.key")
	return certFile, keyFile, pair.Write(certFile, keyFile)
}

func (l *lab) writeKubeconfig(file string, p *plane, user string, pair pki.Pair) error {
	contextName := p.name
	if p.isHub() {
		contextName = karmadaContext
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[contextName] = &clientcmdapi.Cluster{
		Server:                   l.url(p.port),
		CertificateAuthorityData: l.authority.PEM(),
	}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{
		ClientCertificateData: pair.Certificate,
		ClientKeyData:         pair.Key,
	}
	config.Contexts[contextName] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: user}
	config.CurrentContext = contextName
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		return fmt.Errorf("failed to write a kubeconfig: %w", err)
	}
	return nil
}
