// The door to the server: how both gomemcaches open their connections.
//
// It is the default dialer of each library, with two additions: it counts the connections that are
// opened later, and while `prepare` opens the first ones it holds each until all are there. A pool
// opens a connection only for a caller that finds none idle, so this makes it open one for each.

package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
)

type door struct {
	setup   *Setup
	dialer  net.Dialer
	opening atomic.Bool
	later   atomic.Int64 // connections opened after the first ones

	guard   sync.Mutex
	missing map[string]int           // by address: callers that are still to come
	whole   map[string]chan struct{} // closed once all are there
}

func newDoor(setup *Setup) *door {
	return &door{setup: setup, missing: map[string]int{}, whole: map[string]chan struct{}{}}
}

// open has the library make its first connections: one for each caller and server.
func (d *door) open(ping func() error) error {
	callers := d.setup.Callers
	if !d.setup.Common() {
		callers = 1 // how many its pool keeps is the library's own affair
	}
	d.opening.Store(true)
	defer d.opening.Store(false)
	errs := make(chan error, callers)
	for range callers {
		go func() { errs <- ping() }()
	}
	var failure error
	for range callers {
		if err := <-errs; err != nil {
			failure = err
		}
	}
	if failure != nil {
		return fmt.Errorf("%s: %w", strings.Join(d.setup.Servers, ", "), failure)
	}
	return nil
}

func (d *door) dial(ctx context.Context, network, address string) (net.Conn, error) {
	connection, err := d.dialer.DialContext(ctx, network, address)
	switch {
	case !d.opening.Load():
		d.later.Add(1)
	case d.setup.Common():
		select {
		case <-d.arrive(address):
		case <-ctx.Done(): // another caller's connection failed, and it will not come here
		}
	}
	return connection, err
}

func (d *door) arrive(address string) chan struct{} {
	d.guard.Lock()
	defer d.guard.Unlock()
	if d.whole[address] == nil {
		d.whole[address], d.missing[address] = make(chan struct{}), d.setup.Callers
	}
	if d.missing[address]--; d.missing[address] == 0 {
		close(d.whole[address])
	}
	return d.whole[address]
}
