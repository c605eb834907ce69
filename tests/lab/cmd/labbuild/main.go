// Command labbuild builds everything that a lab runs, from a clean checkout with
// only Go installed:
//
//	go run ./cmd/labbuild --out DIR
//
// With --containers also what real containers need: a kubelet, and images.
//
// It always calls `go build`, whose own cache decides what has to be done, and
// prints what it does. Manifests that a lab needs are taken from the downloaded
// modules, so that running a lab needs no Go.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	karmadaModule    = "github.com/karmada-io/karmada"
	kubernetesModule = "k8s.io/kubernetes"
	kustomizePackage = "sigs.k8s.io/kustomize/kustomize/v5"
	kwokPackage      = "sigs.k8s.io/kwok/cmd/kwok"
	helmPackage      = "helm.sh/helm/v3/cmd/helm"
)

// binary is a program and the package that it is built from; module is the
// directory of another go.mod than the lab's, where it needs one.
type binary struct{ name, pkg, module string }

var binaries = []binary{
	{name: "plane", pkg: "./cmd/plane"},
	{name: "karmada", pkg: "./cmd/karmada"},
	{name: "karmada-example-webhook", pkg: "./cmd/karmada-example-webhook"},
	{name: "lab", pkg: "./cmd/lab"},
	{name: "conformance", pkg: "./cmd/conformance"},
	{name: "bench", pkg: "./cmd/bench"},
	{name: "pod", pkg: "./cmd/pod"},
	{name: "kustomize", pkg: kustomizePackage},
	{name: "kwok", pkg: kwokPackage, module: "nodes"},
	{name: "helm", pkg: helmPackage},
}

// ofContainers are only built where containers run.
var ofContainers = []binary{
	{name: "kubelet", pkg: "k8s.io/kubernetes/cmd/kubelet"},
	{name: "httpd", pkg: "./cmd/httpd"},
}

// aliases are the names by which a multi-call program is run.
var aliases = map[string][]string{
	"plane": {"etcd", "etcd-restore", "kube-apiserver", "kube-controller-manager", "kube-scheduler"},
	"karmada": {
		"karmada-agent", "karmada-aggregated-apiserver", "karmada-controller-manager",
		"karmada-scheduler", "karmada-webhook", "karmadactl", "kubectl",
	},
}

func main() {
	out := flag.String("out", "", "directory to fill")
	containers := flag.Bool("containers", false, "also build what runs containers")
	flag.Parse()
	if *out == "" || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: go run ./cmd/labbuild --out DIR [--containers]   (in the directory of the lab's go.mod)")
		os.Exit(2)
	}
	if err := build(*out, *containers); err != nil {
		fmt.Fprintln(os.Stderr, "labbuild:", err)
		os.Exit(1)
	}
}

func build(out string, containers bool) error {
	out, err := filepath.Abs(out)
	if err != nil {
		return fmt.Errorf("failed to find the output directory: %w", err)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("failed to make the output directory: %w", err)
	}
	started := time.Now()
	fmt.Println("building the lab: minutes the first time, seconds after that")
	karmada, err := module(karmadaModule)
	if err != nil {
		return err
	}
	kubernetes, err := module(kubernetesModule)
	if err != nil {
		return err
	}
	linkerFlags := versionFlags(karmada.version, kubernetes.version)
	programs := binaries
	if containers {
		programs = slices.Concat(binaries, ofContainers)
	}
	for _, binary := range programs {
		if err := buildBinary(filepath.Join(out, binary.name), binary, linkerFlags); err != nil {
			return err
		}
		if err := alias(out, binary.name, aliases[binary.name]); err != nil {
			return err
		}
	}
	if err := stage(karmada.dir, out); err != nil {
		return err
	}
	if containers {
		if err := buildImages(filepath.Join(out, "httpd"), filepath.Join(out, "images")); err != nil {
			return err
		}
	}
	fmt.Printf("lab built in %s (%.0f s)\n", out, time.Since(started).Seconds())
	return nil
}

func buildBinary(file string, binary binary, linkerFlags string) error {
	started := time.Now()
	pkg := binary.pkg
	fmt.Printf("  go build -mod=readonly -o %s %s\n", filepath.Base(file), pkg)
	command := exec.Command("go", "build", "-mod=readonly", "-buildvcs=false", "-ldflags="+linkerFlags, "-o", file, pkg)
	command.Dir = binary.module
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("failed to build %s: %w", pkg, err)
	}
	info, err := os.Stat(file)
	if err != nil {
		return fmt.Errorf("failed to find what was built: %w", err)
	}
	fmt.Printf("  %s: %d MB, %.1f s\n", filepath.Base(file), info.Size()>>20, time.Since(started).Seconds())
	return nil
}

// versionFlags strip the programs and tell them their versions, as the release
// builds of both projects do; clients and Karmada read them from /version.
func versionFlags(karmada, kubernetes string) string {
	parts := strings.SplitN(strings.TrimPrefix(kubernetes, "v"), ".", 3)
	flags := []string{"-s", "-w", "-X " + karmadaModule + "/pkg/version.gitVersion=" + karmada}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags,
			"-X "+pkg+".gitVersion="+kubernetes,
			"-X "+pkg+".gitMajor="+parts[0],
			"-X "+pkg+".gitMinor="+parts[1],
		)
	}
	return strings.Join(flags, " ")
}

type moduleInfo struct{ version, dir string }

// module asks Go for the version and the directory of a module, downloading it
// when needed.
func module(path string) (moduleInfo, error) {
	if output, err := exec.Command("go", "mod", "download", path).CombinedOutput(); err != nil {
		return moduleInfo{}, fmt.Errorf("failed to download %s: %w: %s", path, err, output)
	}
	output, err := exec.Command("go", "list", "-mod=readonly", "-m", "-f", "{{.Version}} {{.Dir}}", path).Output()
	if err != nil {
		return moduleInfo{}, fmt.Errorf("failed to find the module %s: %w", path, err)
	}
	version, dir, found := strings.Cut(strings.TrimSpace(string(output)), " ")
	if !found {
		return moduleInfo{}, fmt.Errorf("the module %s has no directory", path)
	}
	return moduleInfo{version, dir}, nil
}

func alias(out, name string, aliases []string) error {
	for _, each := range aliases {
		link := filepath.Join(out, each)
		if target, err := os.Readlink(link); err == nil && target == name {
			continue
		}
		if err := os.RemoveAll(link); err != nil {
			return fmt.Errorf("failed to replace %s: %w", link, err)
		}
		if err := os.Symlink(name, link); err != nil {
			return fmt.Errorf("failed to name %s: %w", each, err)
		}
	}
	return nil
}
