package interpreter

import (
	"compress/gzip"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"
)

// What is added arrives, and Karmada's client reads an answer that is compressed.
func TestAmendedCallsArriveAndCompressedAnswersAreRead(t *testing.T) {
	var query string
	var body map[string]any
	server := httptest.NewTLSServer(http.HandlerFunc(func(writer http.ResponseWriter, asked *http.Request) {
		query = asked.URL.RawQuery
		if err := json.NewDecoder(asked.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		request, _ := body["request"].(map[string]any)
		writer.Header().Set("Content-Encoding", "gzip")
		compressed := gzip.NewWriter(writer)
		answer := map[string]any{"response": map[string]any{"uid": request["uid"], "successful": true, "healthy": true}}
		if err := json.NewEncoder(compressed).Encode(answer); err != nil {
			t.Error(err)
		}
		if err := compressed.Close(); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	seconds := int32(5)
	target, err := NewAmended(t.Context(), server.URL+"/interpret", authority, &seconds)
	if err != nil {
		t.Fatal(err)
	}
	object, err := DecodeObject([]byte(`{"apiVersion":"a/v1","kind":"B","metadata":{"name":"c"}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	call := &Call{Operation: configv1alpha1.InterpreterOperationInterpretHealth, Object: object}
	result, err := target.Interpret(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	if result.Healthy == nil || !*result.Healthy {
		t.Errorf("healthy is %v", result.Healthy)
	}
	for _, part := range []string{"nobody=knows", "timeout=5s", "pretty=true"} {
		if !strings.Contains(query, part) {
			t.Errorf("%s is not in %s", part, query)
		}
	}
	request, _ := body["request"].(map[string]any)
	kind, _ := request["kind"].(map[string]any)
	if body["nobody"] == nil || request["nobody"] == nil || kind["nobody"] == nil || kind["kind"] != "B" {
		t.Errorf("the body is %v", body)
	}
	want := Sent{AcceptEncoding: "gzip", Query: query, UnknownFields: 3, ContentEncoding: "gzip"}
	if *result.Sent != want {
		t.Errorf("sent was %+v instead of %+v", *result.Sent, want)
	}
}
