package address

import (
	"net"
	"testing"
)

func take(t *testing.T, wanted string, ports ...int) *Claim {
	t.Helper()
	claim, err := Take(wanted, ports)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = claim.Release() })
	return claim
}

func TestTwoLabsGetTwoAddresses(t *testing.T) {
	first, second := take(t, ""), take(t, "")
	if first.IP == second.IP {
		t.Errorf("both have %s", first.IP)
	}
}

func TestATakenAddressIsRefusedUntilItIsReleased(t *testing.T) {
	claim := take(t, "")
	if _, err := Take(claim.IP, nil); err == nil {
		t.Fatalf("%s was given twice", claim.IP)
	}
	if err := claim.Release(); err != nil {
		t.Fatal(err)
	}
	take(t, claim.IP)
}

func TestAnAddressWithATakenPortIsRefused(t *testing.T) {
	claim := take(t, "")
	listener, err := net.Listen("tcp", net.JoinHostPort(claim.IP, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if err := claim.Release(); err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if _, err := Take(claim.IP, []int{port}); err == nil {
		t.Errorf("port %d is taken, but the address was given", port)
	}
	take(t, claim.IP)
}

func TestOnlyLoopbackAddresses(t *testing.T) {
	for _, wanted := range []string{"10.0.0.1", "localhost", "::"} {
		if _, err := Take(wanted, nil); err == nil {
			t.Errorf("%s was accepted", wanted)
		}
	}
}
