package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// images are those that a lab's nodes run, by file: all of them hold one
// program, as no registry is in reach.
var images = map[string]image{
	"pause.tar": {name: "lab.test/pause:1", arguments: []string{"pause"}},
	"httpd.tar": {name: "docker.io/library/httpd:2.4"},
}

type image struct {
	name      string
	arguments []string
}

// descriptor points at a blob (OCI image specification, content descriptors).
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// buildImages writes each image as an archive of an OCI image layout, which
// `ctr images import` takes.
func buildImages(program, out string) error {
	content, err := os.ReadFile(program)
	if err != nil {
		return fmt.Errorf("failed to read the program of the images: %w", err)
	}
	layer, err := archive(map[string][]byte{"httpd": content}, 0o755)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("failed to make the directory of images: %w", err)
	}
	for file, image := range images {
		layout, err := image.layout(layer)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(out, file), layout, 0o644); err != nil {
			return fmt.Errorf("failed to write an image: %w", err)
		}
	}
	fmt.Printf("  images: %d of one program\n", len(images))
	return nil
}

func (image image) layout(layer []byte) ([]byte, error) {
	files := map[string][]byte{"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`)}
	blob := func(mediaType string, content []byte) descriptor {
		sum := sha256.Sum256(content)
		hash := hex.EncodeToString(sum[:])
		files["blobs/sha256/"+hash] = content
		return descriptor{MediaType: "application/vnd.oci.image." + mediaType, Digest: "sha256:" + hash, Size: len(content)}
	}
	layers := []descriptor{blob("layer.v1.tar", layer)}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config":       map[string]any{"Entrypoint": []string{"/httpd"}, "Cmd": image.arguments},
		"rootfs":       map[string]any{"type": "layers", "diff_ids": []string{layers[0].Digest}},
	})
	if err != nil {
		return nil, fmt.Errorf("failed to encode the configuration of an image: %w", err)
	}
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2,
		"mediaType":     "application/vnd.oci.image.manifest.v1+json",
		"config":        blob("config.v1+json", config),
		"layers":        layers,
	})
	if err != nil {
		return nil, fmt.Errorf("failed to encode the manifest of an image: %w", err)
	}
	named := blob("manifest.v1+json", manifest)
	named.Annotations = map[string]string{"io.containerd.image.name": image.name}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": []descriptor{named}})
	if err != nil {
		return nil, fmt.Errorf("failed to encode the index of an image: %w", err)
	}
	files["index.json"] = index
	return archive(files, 0o644)
}

func archive(files map[string][]byte, mode int64) ([]byte, error) {
	var out bytes.Buffer
	writer := tar.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		content := files[name]
		header := tar.Header{Name: name, Mode: mode, Size: int64(len(content))}
		if err := writer.WriteHeader(&header); err != nil {
			return nil, fmt.Errorf("failed to archive %s: %w", name, err)
		}
		if _, err := writer.Write(content); err != nil {
			return nil, fmt.Errorf("failed to archive %s: %w", name, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("failed to archive: %w", err)
	}
	return out.Bytes(), nil
}
