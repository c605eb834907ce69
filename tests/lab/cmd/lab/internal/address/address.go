// Package address gives every lab a loopback address of its own, so that labs
// run side by side on equal ports.
//
// Invariant: an address belongs to one lab at a time. The guard is a listener on
// a fixed port of the address: the kernel releases it when its owner dies, so no
// stale lock can remain.
package address

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// GuardPort is the port whose listener says that an address is taken.
const GuardPort = 20001

const attempts = 200

// Claim is the ownership of one address until Release.
type Claim struct {
	IP    string
	guard net.Listener
}

// Take claims the address wanted, or a free one when wanted is empty. Every port
// must be free on it.
func Take(wanted string, ports []int) (*Claim, error) {
	if wanted != "" {
		if ip := net.ParseIP(wanted); ip == nil || !ip.IsLoopback() {
			return nil, fmt.Errorf("the address %q is not a loopback IP address", wanted)
		}
		return try(wanted, ports)
	}
	var last error
	for range attempts {
		claim, err := try(random(), ports)
		if err == nil {
			return claim, nil
		}
		last = err
	}
	return nil, fmt.Errorf("no free address in 127.0.0.0/8 after %d attempts: %w", attempts, last)
}

// Release gives the address up.
func (c *Claim) Release() error { return c.guard.Close() }

func try(ip string, ports []int) (*Claim, error) {
	guard, err := listen(ip, GuardPort)
	if err != nil {
		return nil, fmt.Errorf("%s belongs to another lab: %w", ip, err)
	}
	for _, port := range ports {
		listener, err := listen(ip, port)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("a port of %s is taken: %w", ip, err), guard.Close())
		}
		if err := listener.Close(); err != nil {
			return nil, errors.Join(err, guard.Close())
		}
	}
	return &Claim{IP: ip, guard: guard}, nil
}

func listen(ip string, port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort(ip, strconv.Itoa(port)))
}

// random leaves 127.0.0.0/16 alone, where other programs live.
func random() string {
	return fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
}
