package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: workloads.workload.example.io}
spec:
  group: workload.example.io
  names: {kind: Workload, plural: workloads}
  versions:
  - {name: v1alpha1, served: true}
  - {name: v0, served: false}
`

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestCRDsAreFoundInEveryDocumentButNotInKustomizations(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "two.yaml", crd+"---\n# nothing\n---\n"+strings.ReplaceAll(crd, "workloads.", "others."))
	write(t, dir, "kustomization.yaml", "resources: [two.yaml]\n")
	write(t, dir, "notes.txt", "no manifest")
	crds, err := readCRDs([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	if len(crds) != 2 {
		t.Errorf("found %d", len(crds))
	}
}

func TestDirectoriesThatHoldSomethingElseAreRefused(t *testing.T) {
	for name, content := range map[string]string{
		"another kind": "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n",
		"no name":      "apiVersion: v1\nkind: Secret\n",
		"no YAML":      "{",
		"nothing":      "",
	} {
		dir := t.TempDir()
		write(t, dir, "file.yaml", content)
		if _, err := readCRDs([]string{dir}); err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: error is %v", name, err)
		}
	}
	if _, err := readCRDs([]string{"/nonexistent"}); err == nil {
		t.Error("a missing directory was accepted")
	}
}

func decodeOne(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	objects, err := decodeObjects([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return objects[0]
}

func TestAMemberServesWhatKarmadaHasSeen(t *testing.T) {
	crds := []*unstructured.Unstructured{decodeOne(t, crd)}
	cluster := decodeOne(t, `
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: dfw}
status:
  apiEnablements:
  - groupVersion: v1
    resources: [{kind: Pod, name: pods}]
`)
	if err := serves(cluster, crds); err == nil || !strings.Contains(err.Error(), "Workload") {
		t.Errorf("error is %v", err)
	}
	cluster.Object["status"] = map[string]any{"apiEnablements": []any{map[string]any{
		"groupVersion": "workload.example.io/v1alpha1",
		"resources":    []any{map[string]any{"kind": "Workload", "name": "workloads"}},
	}}}
	if err := serves(cluster, crds); err != nil {
		t.Error(err)
	}
}

func TestConditionsSayWhyTheyAreNotTrue(t *testing.T) {
	cluster := decodeOne(t, `
apiVersion: v1
kind: X
metadata: {name: x}
status:
  conditions:
  - {type: Ready, status: "False", reason: ClusterNotReachable, message: refused}
  - {type: Available, status: "True"}
`)
	if err := hasCondition(cluster, "Ready"); err == nil || !strings.Contains(err.Error(), "ClusterNotReachable") {
		t.Errorf("error is %v", err)
	}
	if err := hasCondition(cluster, "Available"); err != nil {
		t.Error(err)
	}
	if err := hasCondition(cluster, "Other"); err == nil {
		t.Error("a missing condition is true")
	}
}
