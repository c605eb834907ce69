package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

const workload = `{"apiVersion":"workload.example.io/v1alpha1","kind":"Workload","spec":{"replicas":3}}`

// answersTo runs rows and decodes what comes back.
func answersTo(t *testing.T, rows ...string) []map[string]any {
	t.Helper()
	var output bytes.Buffer
	if err := run(strings.NewReader(strings.Join(rows, "\n")), &output); err != nil {
		t.Fatal(err)
	}
	var answers []map[string]any
	for line := range strings.Lines(output.String()) {
		var answer map[string]any
		if err := json.Unmarshal([]byte(line), &answer); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		answers = append(answers, answer)
	}
	return answers
}

func luaRow(id, rest string) string {
	return `{"id":` + id + `,"customizations":["../../testdata/lua/workload.yaml"],` + rest + `,"object":` + workload + `}`
}

func TestAnswersComeInTheOrderOfTheRows(t *testing.T) {
	answers := answersTo(t,
		luaRow(`1`, `"operation":"InterpretReplica"`),
		luaRow(`"two"`, `"operation":"ReviseReplica","replicas":7`),
		luaRow(`3`, `"operation":"InterpretHealth"`))
	if len(answers) != 3 || answers[0]["id"] != 1.0 || answers[1]["id"] != "two" || answers[2]["id"] != 3.0 {
		t.Fatalf("answers are %v", answers)
	}
	if replicas := answers[0]["result"].(map[string]any)["replicas"]; replicas != 3.0 {
		t.Errorf("replicas are %v", replicas)
	}
	object := answers[1]["result"].(map[string]any)["object"].(map[string]any)
	if replicas := object["spec"].(map[string]any)["replicas"]; replicas != 7.0 {
		t.Errorf("revised to %v", replicas)
	}
	if healthy := answers[2]["result"].(map[string]any)["healthy"]; healthy != false {
		t.Errorf("healthy is %v", healthy)
	}
}

func TestBadRowsAreAnsweredWithTheirID(t *testing.T) {
	for row, want := range map[string]string{
		`{"id":7,"url":3}`:                                                 "failed to read the row",
		`{"id":7,"unknown":3}`:                                             "unknown",
		luaRow(`7`, `"operation":"Prune"`):                                 "unknown operation",
		`{"id":7,"operation":"Retain","object":[]}`:                        "failed to read the object",
		`{"id":7,"operation":"Retain","object":{"a":1}}`:                   "apiVersion or kind is missing",
		`{"id":7,"operation":"InterpretHealth","object":` + workload + `}`: "url or customizations",
	} {
		answer := answersTo(t, row)[0]
		message, _ := answer["error"].(string)
		if answer["id"] != 7.0 || answer["ok"] != false || !strings.Contains(message, want) {
			t.Errorf("%s: %v", row, answer)
		}
	}
}

func TestAnUnreachableWebhookIsAnError(t *testing.T) {
	answer := answersTo(t, `{"id":7,"url":"https://127.0.0.1:1/x","timeout_seconds":2,"operation":"InterpretHealth","object":`+workload+`}`)[0]
	if message, _ := answer["error"].(string); !strings.Contains(message, "connection refused") {
		t.Errorf("error is %q", message)
	}
}
