package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestProgramsAreToldTheirVersions(t *testing.T) {
	flags := versionFlags("v1.18.2", "v1.35.4")
	for _, want := range []string{
		"-s -w",
		"karmada/pkg/version.gitVersion=v1.18.2",
		"component-base/version.gitVersion=v1.35.4",
		"component-base/version.gitMajor=1 ",
		"component-base/version.gitMinor=35",
	} {
		if !strings.Contains(flags, want) {
			t.Errorf("%q is not in %s", want, flags)
		}
	}
}

func TestStagingRemovesWhatAnEarlierVersionLeftAndKeepsEqualFiles(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "crds")
	file := filepath.Join(from, "a.yaml")
	if err := os.WriteFile(file, []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := stageDirectory([]string{file}, to); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(filepath.Join(to, "a.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(to, "old.yaml"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := stageDirectory([]string{file}, to); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(to, "old.yaml")); err == nil {
		t.Error("an old file stays")
	}
	after, err := os.Stat(filepath.Join(to, "a.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if !after.ModTime().Equal(before.ModTime()) {
		t.Error("an equal file was written again")
	}
}

func TestAliasesPointAtTheProgram(t *testing.T) {
	out := t.TempDir()
	for range 2 {
		if err := alias(out, "plane", []string{"etcd"}); err != nil {
			t.Fatal(err)
		}
	}
	if target, err := os.Readlink(filepath.Join(out, "etcd")); err != nil || target != "plane" {
		t.Errorf("%s, %v", target, err)
	}
}

func TestAnImageIsALayoutWhoseBlobsAreNamedByTheirDigests(t *testing.T) {
	layer, err := archive(map[string][]byte{"httpd": []byte("program")}, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	layout, err := images["pause.tar"].layout(layer)
	if err != nil {
		t.Fatal(err)
	}
	var layers int
	for reader := tar.NewReader(bytes.NewReader(layout)); ; {
		header, err := reader.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		if digest, found := strings.CutPrefix(header.Name, "blobs/sha256/"); found {
			if sum := sha256.Sum256(content); digest != hex.EncodeToString(sum[:]) {
				t.Errorf("%s is another's digest", header.Name)
			}
		}
		if bytes.Equal(content, layer) {
			layers++
		}
	}
	if layers != 1 {
		t.Errorf("%d layers", layers)
	}
}
