package spec

import (
	"strings"
	"testing"
)

func TestAFullSpecIsRead(t *testing.T) {
	spec, err := Parse([]byte(`{
		"dir": "work", "bin": "/bin/lab",
		"hub": {"extra_flags": {"karmada-controller-manager": ["--v=4"]}},
		"members": [
			{"name": "dfw", "mode": "Push", "labels": {"topology.datum.net/city-code": "DFW"}},
			{"name": "ord", "mode": "Pull", "extra_flags": {"karmada-agent": ["--v=4"]}}],
		"crd_dirs": ["crds"],
		"extra_planes": ["project-a", {"name": "project-b", "crds": true}]}`), "/base")
	if err != nil {
		t.Fatal(err)
	}
	if spec.Dir != "/base/work" || spec.Bin != "/bin/lab" || spec.CRDDirs[0] != "/base/crds" {
		t.Errorf("paths are %s, %s, %s", spec.Dir, spec.Bin, spec.CRDDirs)
	}
	if spec.Members[1].Mode != Pull || spec.Members[0].Labels["topology.datum.net/city-code"] != "DFW" {
		t.Errorf("members are %+v", spec.Members)
	}
	if spec.ExtraPlanes[0].Name != "project-a" || !spec.ExtraPlanes[1].CRDs {
		t.Errorf("planes are %+v", spec.ExtraPlanes)
	}
}

func TestBadSpecsAreRefusedWithThePlace(t *testing.T) {
	const head = `"dir": "d", "bin": "b", `
	cases := map[string]struct{ spec, want string }{
		"no directory":      {`{"bin": "b"}`, "dir is missing"},
		"no binaries":       {`{"dir": "d"}`, "bin is missing"},
		"unknown field":     {`{` + head + `"member": []}`, "member"},
		"unknown in plane":  {`{` + head + `"extra_planes": [{"nam": "x"}]}`, "nam"},
		"no hub":            {`{` + head + `"members": [{"name": "a", "mode": "Push"}]}`, "without a hub"},
		"bad mode":          {`{` + head + `"hub": {}, "members": [{"name": "a", "mode": "push"}]}`, `members[0]: mode is "push"`},
		"bad name":          {`{` + head + `"hub": {}, "members": [{"name": "A_b", "mode": "Push"}]}`, `"A_b"`},
		"name of the hub":   {`{` + head + `"hub": {}, "members": [{"name": "hub", "mode": "Push"}]}`, "taken"},
		"name taken":        {`{` + head + `"hub": {}, "members": [{"name": "a", "mode": "Push"}], "extra_planes": ["a"]}`, "extra_planes[0]"},
		"unknown program":   {`{` + head + `"hub": {"extra_flags": {"scheduler": []}}}`, "karmada-scheduler"},
		"flag without dash": {`{` + head + `"hub": {"extra_flags": {"etcd": ["v=4"]}}}`, "v=4"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(test.spec), "/")
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want %q in it", err, test.want)
			}
		})
	}
}

func TestEveryProblemIsNamedAtOnce(t *testing.T) {
	_, err := Parse([]byte(`{"hub": {}, "members": [{"name": "", "mode": ""}]}`), "/")
	for _, want := range []string{"dir", "bin", "name", "mode"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}
