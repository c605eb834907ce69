package interpreter_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/karmada-io/karmada/examples/customresourceinterpreter/webhook/app"
	"github.com/karmada-io/karmada/examples/customresourceinterpreter/webhook/app/options"
	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"

	"popcell.dev/lab/internal/interpreter"
	"popcell.dev/lab/internal/pki"
)

func TestMain(m *testing.M) {
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	os.Exit(m.Run())
}

// startExample runs Karmada's example webhook in this process and answers a
// client of it.
func startExample(t *testing.T) interpreter.Target {
	t.Helper()
	authority, _, err := pki.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Server("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := pair.Write(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")); err != nil {
		t.Fatal(err)
	}
	pretendKubeconfig(t)
	metricsserver.DefaultBindAddress = "0"
	port := freePort(t)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- app.Run(ctx, &options.Options{BindAddress: "127.0.0.1", SecurePort: port, CertDir: dir})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the webhook ended badly: %v", err)
		}
	})
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	awaitListener(t, address, ended)
	timeout := int32(10)
	target, err := interpreter.NewWebhook(ctx, "https://"+address+"/interpreter-workload", authority.PEM(), &timeout)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// pretendKubeconfig satisfies the webhook's manager, which never uses it.
func pretendKubeconfig(t *testing.T) {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["none"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
	config.Contexts["none"] = &clientcmdapi.Context{Cluster: "none"}
	config.CurrentContext = "none"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

func awaitListener(t *testing.T, address string, ended <-chan error) {
	t.Helper()
	for range 600 {
		connection, err := net.Dial("tcp", address)
		if err == nil {
			_ = connection.Close()
			return
		}
		select {
		case err := <-ended:
			t.Fatalf("the webhook ended: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Fatalf("nothing listens on %s", address)
}

// newCall makes the call of an operation from the fixtures.
func newCall(t *testing.T, operation configv1alpha1.InterpreterOperation) *interpreter.Call {
	t.Helper()
	object, err := interpreter.ReadObject("../../testdata/workload/object.yaml")
	if err != nil {
		t.Fatal(err)
	}
	call := &interpreter.Call{Operation: operation, Object: object}
	switch operation {
	case configv1alpha1.InterpreterOperationRetain:
		call.Observed, err = interpreter.ReadObject("../../testdata/workload/observed.yaml")
	case configv1alpha1.InterpreterOperationAggregateStatus:
		call.Items, err = interpreter.ReadItems("../../testdata/workload/items.yaml")
	case configv1alpha1.InterpreterOperationReviseReplica:
		call.Replicas = 7
	}
	if err != nil {
		t.Fatal(err)
	}
	return call
}

func TestLuaAnswersAsTheExampleWebhook(t *testing.T) {
	webhook := startExample(t)
	lua, err := interpreter.NewLua("../../testdata/lua/workload.yaml")
	if err != nil {
		t.Fatal(err)
	}
	wanted, err := os.ReadFile("testdata/workload-answers.json")
	if err != nil {
		t.Fatal(err)
	}
	var answers map[string]map[string]any
	if err := json.Unmarshal(wanted, &answers); err != nil {
		t.Fatal(err)
	}
	for _, operation := range interpreter.Operations {
		t.Run(string(operation), func(t *testing.T) {
			fromWebhook := answer(t, webhook, operation)
			fromLua := answer(t, lua, operation)
			if !reflect.DeepEqual(fromWebhook, fromLua) {
				t.Errorf("webhook answers\n%v\nLua answers\n%v", fromWebhook, fromLua)
			}
			if !interpreter.ChangesObject(operation) && !reflect.DeepEqual(fromLua, answers[string(operation)]) {
				t.Errorf("both answer %v, not %v", fromLua, answers[string(operation)])
			}
		})
	}
}

// answer is the result as JSON has it.
func answer(t *testing.T, target interpreter.Target, operation configv1alpha1.InterpreterOperation) map[string]any {
	t.Helper()
	result, err := target.Interpret(context.Background(), newCall(t, operation))
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	var decoded map[string]any
	if err := json.Unmarshal(data, &decoded); err != nil {
		t.Fatal(err)
	}
	if operation == configv1alpha1.InterpreterOperationAggregateStatus {
		// Karmada writes the status alone; outside it Lua loses empty objects.
		object := decoded["object"].(map[string]any)
		decoded["object"] = map[string]any{"status": object["status"]}
	}
	return decoded
}

func TestOperationsThatChangeTheObject(t *testing.T) {
	webhook := startExample(t)
	for operation, want := range map[configv1alpha1.InterpreterOperation]struct {
		field []string
		value any
	}{
		configv1alpha1.InterpreterOperationReviseReplica:   {[]string{"spec", "replicas"}, 7.0},
		configv1alpha1.InterpreterOperationRetain:          {[]string{"spec", "paused"}, true},
		configv1alpha1.InterpreterOperationAggregateStatus: {[]string{"status", "readyReplicas"}, 5.0},
	} {
		value := answer(t, webhook, operation)["object"]
		for _, name := range want.field {
			value = value.(map[string]any)[name]
		}
		if value != want.value {
			t.Errorf("%s: %v is %v, want %v", operation, want.field, value, want.value)
		}
	}
}

func TestAnotherKindIsNotInterpreted(t *testing.T) {
	lua, err := interpreter.NewLua("../../testdata/lua/workload.yaml")
	if err != nil {
		t.Fatal(err)
	}
	object, err := interpreter.DecodeObject([]byte(`{"apiVersion":"v1","kind":"ConfigMap"}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	call := &interpreter.Call{Operation: configv1alpha1.InterpreterOperationInterpretHealth, Object: object}
	if _, err := lua.Interpret(context.Background(), call); !errors.Is(err, interpreter.ErrNotInterpreted) {
		t.Errorf("error is %v", err)
	}
}

func TestLargeIntegersStayExact(t *testing.T) {
	const text = `{"apiVersion":"v1","kind":"X","spec":{"n":9007199254740993,"f":1.50}}`
	object, err := interpreter.DecodeObject([]byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := object.Object["spec"].(map[string]any)["n"]; n != int64(9007199254740993) {
		t.Errorf("n is %v (%T)", n, n)
	}
}
