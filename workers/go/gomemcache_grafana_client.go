// gomemcache, Grafana's fork: gomemcache_pool.go makes its calls. With `profile=defaults` its pool keeps 2 idle
// connections, further callers open one for each call, and its time-outs are 0.1 s.
//
// The library takes the end of a connection for the end of a reply: a server that dies in a read looks
// like a miss, and the pool keeps the dead connection. So `grafanaConn` returns another error than
// io.EOF, which the library treats as a failure. The library's `Close` leaves connections open; this
// file closes them.

package main

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/grafana/gomemcache/memcache"
)

func init() {
	register("gomemcache-grafana", &Client{
		Library:  "github.com/grafana/gomemcache",
		Wires:    []string{"text"},
		Features: []string{"threads", "open_loop", "unix", "cluster", "tls"},
		Options:  poolOptions,
		New:      func() Session { return &grafanaSession{} },
	})
}

type grafanaSession struct {
	BaseSession
	client    *memcache.Client
	connector *connector

	guard sync.Mutex
	open  map[*grafanaConn]bool
}

func (s *grafanaSession) Open(setup *Prepare) error {
	s.connector, s.open = newConnector(setup), map[*grafanaConn]bool{}
	s.client = memcache.New(setup.Servers...)
	s.client.DialTimeout = s.dial
	if setup.Common() {
		s.client.Timeout = setup.Timeout
		s.client.ConnectTimeout = setup.Timeout
		s.client.MaxIdleConns = setup.Callers
	}
	if setup.Tuned() {
		// Its documents: a number higher than the peak of parallel requests.
		s.client.MaxIdleConns = setup.Callers + 1
	}
	return s.connector.open(s.client.Ping)
}

func (s *grafanaSession) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	inner, err := s.connector.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	connection := &grafanaConn{Conn: inner, session: s}
	s.guard.Lock()
	defer s.guard.Unlock()
	s.open[connection] = true
	return connection, nil
}

func (s *grafanaSession) Reconnects() int64 { return s.connector.later.Load() }

func (s *grafanaSession) Close() {
	s.client.Close()
	s.guard.Lock()
	defer s.guard.Unlock()
	for connection := range s.open {
		_ = connection.Conn.Close()
	}
}

var errEnded = errors.Join(net.ErrClosed, errors.New("the server closed the connection"))

// grafanaConn is a connection whose end is an error other than io.EOF.
type grafanaConn struct {
	net.Conn
	session *grafanaSession
}

func (c *grafanaConn) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	if err == io.EOF {
		err = errEnded
	}
	return n, err
}

func (c *grafanaConn) Close() error {
	c.session.guard.Lock()
	delete(c.session.open, c)
	c.session.guard.Unlock()
	return c.Conn.Close()
}

func (s *grafanaSession) Handlers() Handlers { return s.pool().handlers() }

// HandlersUntil has reads only: the library's only call with a context reads many keys.
func (s *grafanaSession) HandlersUntil(current func() context.Context) Handlers {
	p := s.pool()
	p.get = func(key string) (*memcache.Item, error) {
		items, err := s.client.GetMulti(current(), []string{key})
		if item, there := items[key]; err == nil && there {
			return item, nil
		}
		if err == nil {
			err = memcache.ErrCacheMiss
		}
		return nil, err
	}
	return Handlers{Get.kind(false): p.handlers()[Get.kind(false)]}
}

func (s *grafanaSession) pool() *pool[memcache.Item] {
	c, background := s.client, context.Background()
	return &pool[memcache.Item]{
		get:      func(key string) (*memcache.Item, error) { return c.Get(key) },
		getMulti: func(keys []string) (map[string]*memcache.Item, error) { return c.GetMulti(background, keys) },
		set:      c.Set, add: c.Add, replace: c.Replace, cas: c.CompareAndSwap,
		delete: c.Delete, touch: c.Touch, incr: c.Increment, decr: c.Decrement, ping: c.Ping,
		item: func(op *Op) *memcache.Item {
			return &memcache.Item{Key: op.Key, Value: op.Value, Expiration: int32(op.ExptimeS)}
		},
		renew: func(item *memcache.Item, op *Op) {
			item.Value, item.Expiration = op.Value, int32(op.ExptimeS)
		},
		value: func(item *memcache.Item) []byte { return plain(item.Value, item.Flags) },
		miss:  memcache.ErrCacheMiss, notStored: memcache.ErrNotStored,
		conflict: memcache.ErrCASConflict, malformed: memcache.ErrMalformedKey,
		noServers: memcache.ErrNoServers,
	}
}
