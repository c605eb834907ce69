package pki

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func parse(t *testing.T, certificate []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(certificate)
	if block == nil {
		t.Fatal("no PEM block")
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func newAuthority(t *testing.T) *Authority {
	t.Helper()
	authority, _, err := NewAuthority("lab")
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

func TestServerCertificateIsValidForEveryNameAndNoOther(t *testing.T) {
	authority := newAuthority(t)
	names := []string{"127.77.3.9", "localhost", "karmada-webhook.karmada-system.svc"}
	pair, err := authority.Server(names...)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parse(t, authority.PEM()))
	certificate := parse(t, pair.Certificate)
	for _, name := range names {
		if _, err := certificate.Verify(x509.VerifyOptions{DNSName: name, Roots: roots}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"127.77.3.8", "example.com"} {
		if _, err := certificate.Verify(x509.VerifyOptions{DNSName: name, Roots: roots}); err == nil {
			t.Errorf("%s: is accepted", name)
		}
	}
	if _, err := tls.X509KeyPair(pair.Certificate, pair.Key); err != nil {
		t.Errorf("certificate and key do not belong together: %v", err)
	}
}

func TestCertificatesAreBackdatedByAnHour(t *testing.T) {
	authority := newAuthority(t)
	pair, err := authority.Server("localhost")
	if err != nil {
		t.Fatal(err)
	}
	for _, certificate := range [][]byte{authority.PEM(), pair.Certificate} {
		parsed := parse(t, certificate)
		if age := time.Since(parsed.NotBefore); age < backdated {
			t.Errorf("%s: valid for %s only", parsed.Subject, age)
		}
	}
}

func TestClientCertificateCarriesUserAndGroups(t *testing.T) {
	pair, err := newAuthority(t).Client("popcell:cell:dfw", "cells", "readers")
	if err != nil {
		t.Fatal(err)
	}
	subject := parse(t, pair.Certificate).Subject
	if subject.CommonName != "popcell:cell:dfw" || len(subject.Organization) != 2 {
		t.Errorf("subject is %s", subject)
	}
}

func TestAServerNeedsAName(t *testing.T) {
	if _, err := newAuthority(t).Server(); err == nil {
		t.Error("a certificate without names was signed")
	}
}

func TestKeyFilesAreForTheirOwnerOnly(t *testing.T) {
	pair, err := newAuthority(t).Client("admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	key := filepath.Join(dir, "admin.key")
	if err := pair.Write(filepath.Join(dir, "admin.crt"), key); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(key)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v", info.Mode())
	}
}
