// Package pki makes the certificate authority of one lab and everything that it
// signs.
//
// Invariants: every certificate is valid from one hour ago (clocks of machines
// differ) for ten years; keys are ECDSA P-256 and written with mode 0600; one
// authority signs for every plane of the lab, so a client certificate that it
// signs is known on all of them.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

const (
	backdated = time.Hour
	lifetime  = 10 * 365 * 24 * time.Hour
)

// Authority signs the certificates of one lab.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

// Pair is a certificate and its private key, both PEM.
type Pair struct {
	Certificate []byte
	Key         []byte
}

// NewAuthority makes a self-signed authority.
func NewAuthority(name string) (*Authority, Pair, error) {
	template, err := newTemplate(pkix.Name{CommonName: name})
	if err != nil {
		return nil, Pair{}, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	key, err := newKey()
	if err != nil {
		return nil, Pair{}, err
	}
	pair, err := sign(template, template, key, key)
	if err != nil {
		return nil, Pair{}, err
	}
	block, _ := pem.Decode(pair.Certificate)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, Pair{}, fmt.Errorf("failed to read back the certificate of the authority: %w", err)
	}
	return &Authority{certificate: certificate, key: key, pem: pair.Certificate}, pair, nil
}

// PEM is the authority's own certificate.
func (a *Authority) PEM() []byte { return a.pem }

// Server signs a serving certificate for names, which are DNS names or IP
// addresses. The first is its common name too.
func (a *Authority) Server(names ...string) (Pair, error) {
	if len(names) == 0 {
		return Pair{}, fmt.Errorf("failed to sign a server certificate: no name was given")
	}
	return a.leaf(pkix.Name{CommonName: names[0]}, x509.ExtKeyUsageServerAuth, names)
}

// Client signs a client certificate: Kubernetes reads the user's name and
// groups from it.
func (a *Authority) Client(user string, groups ...string) (Pair, error) {
	return a.leaf(pkix.Name{CommonName: user, Organization: groups}, x509.ExtKeyUsageClientAuth, nil)
}

func (a *Authority) leaf(subject pkix.Name, usage x509.ExtKeyUsage, names []string) (Pair, error) {
	template, err := newTemplate(subject)
	if err != nil {
		return Pair{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{usage}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	key, err := newKey()
	if err != nil {
		return Pair{}, err
	}
	return sign(template, a.certificate, key, a.key)
}

// ServiceAccountKeys makes the key pair that signs and checks service account
// tokens: the public key and the private key, both PEM.
func ServiceAccountKeys() (public, private []byte, err error) {
	key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	public, err = encodePublic(key)
	if err != nil {
		return nil, nil, err
	}
	private, err = encodeKey(key)
	return public, private, err
}

// Write writes the pair to two files, the key readable by its owner only.
func (p Pair) Write(certificateFile, keyFile string) error {
	if err := os.WriteFile(certificateFile, p.Certificate, 0o644); err != nil {
		return fmt.Errorf("failed to write a certificate: %w", err)
	}
	if err := os.WriteFile(keyFile, p.Key, 0o600); err != nil {
		return fmt.Errorf("failed to write a key: %w", err)
	}
	return nil
}

func newTemplate(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("failed to make a serial number: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    now.Add(-backdated),
		NotAfter:     now.Add(lifetime),
	}, nil
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("failed to make a key: %w", err)
	}
	return key, nil
}

func sign(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) (Pair, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return Pair{}, fmt.Errorf("failed to sign the certificate of %q: %w", template.Subject.CommonName, err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return Pair{}, err
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return Pair{Certificate: certificate, Key: keyPEM}, nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("failed to encode a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func encodePublic(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("failed to encode a public key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}
