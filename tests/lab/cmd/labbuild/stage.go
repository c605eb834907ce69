package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// staged are the manifests of Karmada that labs and tests read, and where they
// go. A pattern that ends in a file name may match many; a target that ends in a
// slash is a directory.
var staged = []struct{ from, to string }{
	{"charts/karmada/_crds/bases/*/*.yaml", "karmada-crds/"},
	{"artifacts/deploy/webhook-configuration.yaml", "karmada-webhook-configuration.yaml"},
	{"examples/customresourceinterpreter/apis/*.yaml", "karmada-example-crds/"},
	{"examples/customresourceinterpreter/webhook-configuration.yaml", "karmada-example-webhook-configuration.yaml"},
}

// Karmada's bundled Lua customizations with their test files, by group, version
// and kind.
const (
	thirdPartyFrom = "pkg/resourceinterpreter/default/thirdparty/resourcecustomizations"
	thirdPartyTo   = "karmada-thirdparty"
)

// stage copies the manifests; directories hold nothing else afterwards.
func stage(karmada, out string) error {
	if err := stageTree(filepath.Join(karmada, thirdPartyFrom), filepath.Join(out, thirdPartyTo)); err != nil {
		return err
	}
	for _, each := range staged {
		files, err := filepath.Glob(filepath.Join(karmada, each.from))
		if err != nil || len(files) == 0 {
			return fmt.Errorf("there is no %s in %s: the layout of Karmada changed", each.from, karmada)
		}
		target := filepath.Join(out, each.to)
		if each.to[len(each.to)-1] != '/' {
			if err := copyFile(files[0], target); err != nil {
				return err
			}
			continue
		}
		if err := stageDirectory(files, target); err != nil {
			return err
		}
		fmt.Printf("  %s: %d files of Karmada\n", filepath.Base(target), len(files))
	}
	return nil
}

func stageTree(from, to string) error {
	count := 0
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, relative)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return fmt.Errorf("failed to make a directory: %w", err)
		}
		count++
		return copyFile(path, target)
	})
	if err != nil {
		return fmt.Errorf("failed to stage %s: %w", filepath.Base(to), err)
	}
	fmt.Printf("  %s: %d files of Karmada\n", filepath.Base(to), count)
	return nil
}

func stageDirectory(files []string, target string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return fmt.Errorf("failed to make a directory: %w", err)
	}
	wanted := map[string]bool{}
	for _, file := range files {
		wanted[filepath.Base(file)] = true
		if err := copyFile(file, filepath.Join(target, filepath.Base(file))); err != nil {
			return err
		}
	}
	present, err := os.ReadDir(target)
	if err != nil {
		return fmt.Errorf("failed to list %s: %w", target, err)
	}
	for _, entry := range present {
		if !wanted[entry.Name()] {
			if err := os.RemoveAll(filepath.Join(target, entry.Name())); err != nil {
				return fmt.Errorf("failed to remove what an earlier version left: %w", err)
			}
		}
	}
	return nil
}

// copyFile leaves an equal file alone, so that its time says when it changed.
func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("failed to read a manifest: %w", err)
	}
	if present, err := os.ReadFile(to); err == nil && bytes.Equal(present, data) {
		return nil
	}
	if err := os.WriteFile(to, data, 0o644); err != nil {
		return fmt.Errorf("failed to stage a manifest: %w", err)
	}
	return nil
}
