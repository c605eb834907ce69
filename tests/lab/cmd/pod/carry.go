package main

import (
	"fmt"
	"io"
	"net"
)

// carry takes connections at one address to another, until this process ends.
func carry(fromNetwork, from, toNetwork, to string) error {
	listener, err := net.Listen(fromNetwork, from)
	if err != nil {
		return fmt.Errorf("failed to listen: %w", err)
	}
	go accept(listener, toNetwork, to)
	return nil
}

func accept(listener net.Listener, network, address string) {
	for {
		near, err := listener.Accept()
		if err != nil {
			return
		}
		go join(near, network, address)
	}
}

// join ends a connection at once whose other end is not there.
func join(near net.Conn, network, address string) {
	defer near.Close()
	far, err := net.Dial(network, address)
	if err != nil {
		return
	}
	defer far.Close()
	done := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			if half, ok := pair[0].(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
			done <- struct{}{}
		}()
	}
	<-done
	<-done
}
