// Connections of clients. A connector dials as Go programs do (TCP_NODELAY is Go's default), and
// counts the connections that are opened after Open as reconnects.
//
// A library with its own pool gets `dial`. While Open makes the first connections, `dial` holds each
// until all are there: a pool opens a connection only for a caller that finds none idle, so this
// makes it open one for each caller. A library that takes a connection gets a `callerConn`.

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

type connector struct {
	setup   *Prepare
	dialer  net.Dialer
	tls     *tls.Config // nil: no TLS
	opening atomic.Bool
	later   atomic.Int64 // connections opened after the first ones

	guard   sync.Mutex
	missing map[string]int           // by address: callers that have not arrived yet
	whole   map[string]chan struct{} // closed once all are there
}

func newConnector(setup *Prepare) *connector {
	return &connector{setup: setup, missing: map[string]int{}, whole: map[string]chan struct{}{}}
}

// open makes the library open its first connections: one for each caller and server.
func (c *connector) open(ping func() error) error {
	config, err := readTLS(c.setup.Options)
	if err != nil {
		return err
	}
	c.tls = config
	callers := c.setup.Callers
	if !c.setup.Common() {
		callers = 1 // the library itself decides how many its pool keeps
	}
	c.opening.Store(true)
	defer c.opening.Store(false)
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
		return fmt.Errorf("%s: %w", strings.Join(c.setup.Servers, ", "), failure)
	}
	return nil
}

func (c *connector) dial(ctx context.Context, network, address string) (net.Conn, error) {
	connection, err := c.connect(ctx, network, address)
	switch {
	case !c.opening.Load():
		c.later.Add(1)
	case c.setup.Common():
		select {
		case <-c.arrive(address):
		case <-ctx.Done(): // another caller's connection failed, and it will never arrive
		}
	}
	return connection, err
}

func (c *connector) connect(ctx context.Context, network, address string) (net.Conn, error) {
	if c.tls == nil {
		return c.dialer.DialContext(ctx, network, address)
	}
	// Without a name in the options, the certificate must have the address's name.
	dialer := tls.Dialer{NetDialer: &c.dialer, Config: c.tls}
	return dialer.DialContext(ctx, network, address)
}

// tlsOptions belong to a client with TLS; all except the name are PEM files.
var tlsOptions = []string{"tls", "tls_name", "tls_client_cert", "tls_client_key"}

// readTLS reads the files that the options name; nil without the option `tls`.
func readTLS(options map[string]string) (*tls.Config, error) {
	path := options["tls"]
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: options["tls_name"]}
	if !config.RootCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: it has no certificate", path)
	}
	if own := options["tls_client_cert"]; own != "" {
		pair, err := tls.LoadX509KeyPair(own, options["tls_client_key"])
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

func (c *connector) arrive(address string) chan struct{} {
	c.guard.Lock()
	defer c.guard.Unlock()
	if c.whole[address] == nil {
		c.whole[address], c.missing[address] = make(chan struct{}), c.setup.Callers
	}
	if c.missing[address]--; c.missing[address] == 0 {
		close(c.whole[address])
	}
	return c.whole[address]
}

// callerConn is the connection of one caller to one server, for a library that takes a connection.
// After a failure the next reply could belong to an earlier request: `hangUp` closes the connection,
// and the next `ready` opens another one.
type callerConn struct {
	connector *connector
	server    string // host:port, or the path of a Unix socket
	conn      net.Conn
}

// connectCaller connects one caller to a server. Open calls it once for each caller.
func (c *connector) connectCaller(server string) (*callerConn, error) {
	c.opening.Store(true)
	defer c.opening.Store(false)
	caller := &callerConn{connector: c, server: server}
	_, err := caller.ready()
	return caller, err
}

// ready returns the connection, reopened if need be, with the time-out as its deadline.
func (c *callerConn) ready() (net.Conn, error) {
	timeout := c.connector.setup.Timeout
	if c.conn == nil {
		network := "tcp"
		if strings.Contains(c.server, "/") {
			network = "unix"
		}
		conn, err := net.DialTimeout(network, c.server, timeout)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.server, err)
		}
		if !c.connector.opening.Load() {
			c.connector.later.Add(1)
		}
		c.conn = conn
	}
	return c.conn, c.conn.SetDeadline(time.Now().Add(timeout))
}

// hangUp closes the connection; safe to call twice.
func (c *callerConn) hangUp() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}
