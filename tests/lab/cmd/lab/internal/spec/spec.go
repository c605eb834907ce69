// Package spec is the description of a lab: what `lab run --spec FILE` reads.
package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Spec describes one lab.
type Spec struct {
	// Dir is the work directory: data, certificates, logs. What an earlier lab
	// left there is removed.
	Dir string `json:"dir"`
	// Bin is the directory that labbuild filled.
	Bin string `json:"bin"`
	// Address is the loopback address to use; empty takes a free one.
	Address string `json:"address,omitempty"`
	// Hub is the Karmada control plane; without it there are extra planes only.
	Hub *Hub `json:"hub,omitempty"`
	// Members are clusters that join the hub.
	Members []Member `json:"members,omitempty"`
	// CRDDirs hold CustomResourceDefinitions for the hub and every member.
	CRDDirs []string `json:"crd_dirs,omitempty"`
	// ExtraPlanes are plain API servers that join nothing.
	ExtraPlanes []Plane `json:"extra_planes,omitempty"`
}

// Flags are extra command line flags by program. They follow the lab's own, so
// that the last wins.
type Flags map[string][]string

// Hub is the Karmada control plane.
type Hub struct {
	ExtraFlags Flags `json:"extra_flags,omitempty"`
	// OwnEtcd gives it an etcd of its own, of which snapshots can be taken and
	// restored.
	OwnEtcd bool `json:"own_etcd,omitempty"`
}

// Mode says who carries objects into a member.
type Mode string

// The two ways of Karmada.
const (
	Push Mode = "Push"
	Pull Mode = "Pull"
)

// Member is one cluster of the hub.
type Member struct {
	Name       string            `json:"name"`
	Mode       Mode              `json:"mode"`
	Labels     map[string]string `json:"labels,omitempty"`
	ExtraFlags Flags             `json:"extra_flags,omitempty"`
	OwnEtcd    bool              `json:"own_etcd,omitempty"`
}

// Plane is a plain API server; in JSON its name alone, or an object.
type Plane struct {
	Name       string `json:"name"`
	ExtraFlags Flags  `json:"extra_flags,omitempty"`
	// CRDs says that the crd_dirs are applied to it too.
	CRDs    bool `json:"crds,omitempty"`
	OwnEtcd bool `json:"own_etcd,omitempty"`
}

// UnmarshalJSON reads a name or an object.
func (p *Plane) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte(`"`)) {
		return json.Unmarshal(data, &p.Name)
	}
	type object Plane
	return decode(data, (*object)(p))
}

// Programs that take extra flags, by the kind of plane.
var (
	planePrograms  = []string{"kube-apiserver", "kube-controller-manager"}
	memberPrograms = append([]string{"karmada-agent"}, planePrograms...)
	hubPrograms    = append([]string{
		"etcd", "karmada-aggregated-apiserver", "karmada-webhook", "karmada-controller-manager", "karmada-scheduler",
	}, planePrograms...)
)

var name = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,46}[a-z0-9])?$`)

// Read reads and checks the file. Relative paths in it start at its directory.
func Read(file string) (*Spec, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("failed to read the spec: %w", err)
	}
	base, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return nil, fmt.Errorf("failed to find the directory of the spec: %w", err)
	}
	spec, err := Parse(data, base)
	if err != nil {
		return nil, fmt.Errorf("failed to read the spec %s: %w", file, err)
	}
	return spec, nil
}

// Parse reads and checks a spec whose relative paths start at base.
func Parse(data []byte, base string) (*Spec, error) {
	var spec Spec
	if err := decode(data, &spec); err != nil {
		return nil, err
	}
	if err := spec.check(); err != nil {
		return nil, err
	}
	spec.Dir, spec.Bin = absolute(base, spec.Dir), absolute(base, spec.Bin)
	for i, dir := range spec.CRDDirs {
		spec.CRDDirs[i] = absolute(base, dir)
	}
	return &spec, nil
}

func (s *Spec) check() error {
	var problems []error
	if s.Dir == "" {
		problems = append(problems, errors.New("dir is missing: the work directory"))
	}
	if s.Bin == "" {
		problems = append(problems, errors.New("bin is missing: the directory that labbuild filled"))
	}
	if s.Hub == nil && len(s.Members) > 0 {
		problems = append(problems, errors.New("members without a hub: add \"hub\": {}"))
	}
	if s.Hub != nil {
		problems = append(problems, s.Hub.ExtraFlags.check("hub", hubPrograms)...)
	}
	seen := map[string]bool{"hub": true}
	for i, member := range s.Members {
		where := fmt.Sprintf("members[%d]", i)
		problems = append(problems, checkName(where, member.Name, seen)...)
		problems = append(problems, member.ExtraFlags.check(where, memberPrograms)...)
		if member.Mode != Push && member.Mode != Pull {
			problems = append(problems, fmt.Errorf("%s: mode is %q, not Push or Pull", where, member.Mode))
		}
	}
	for i, plane := range s.ExtraPlanes {
		where := fmt.Sprintf("extra_planes[%d]", i)
		problems = append(problems, checkName(where, plane.Name, seen)...)
		problems = append(problems, plane.ExtraFlags.check(where, planePrograms)...)
	}
	return errors.Join(problems...)
}

func checkName(where, value string, seen map[string]bool) []error {
	if !name.MatchString(value) {
		return []error{fmt.Errorf("%s: name %q is not a DNS label of at most 48 characters", where, value)}
	}
	if seen[value] {
		return []error{fmt.Errorf("%s: name %q is taken", where, value)}
	}
	seen[value] = true
	return nil
}

func (f Flags) check(where string, programs []string) []error {
	var problems []error
	for program, flags := range f {
		if !slices.Contains(programs, program) {
			problems = append(problems, fmt.Errorf("%s: extra_flags for %q: the programs are %s", where, program, strings.Join(programs, ", ")))
		}
		for _, flag := range flags {
			if !strings.HasPrefix(flag, "--") {
				problems = append(problems, fmt.Errorf("%s: extra_flags for %q: %q does not start with --", where, program, flag))
			}
		}
	}
	return problems
}

func decode(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

func absolute(base, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(base, path)
}
