// gomemcache by Brad Fitzpatrick: gomemcache_pool.go makes its calls. With `profile=defaults` its pool keeps
// 2 idle connections, further callers open one for each call, and its time-out is 0.5 s.

package main

import "github.com/bradfitz/gomemcache/memcache"

func init() {
	register("gomemcache", &Client{
		Library:  "github.com/bradfitz/gomemcache",
		Wires:    []string{"text"},
		Features: []string{"threads", "open_loop", "unix", "cluster", "tls"},
		Options:  poolOptions,
		New:      func() Session { return &gomemcacheSession{} },
	})
}

type gomemcacheSession struct {
	BaseSession
	client    *memcache.Client
	connector *connector
}

func (s *gomemcacheSession) Open(setup *Prepare) error {
	s.connector = newConnector(setup)
	s.client = memcache.New(setup.Servers...)
	s.client.DialContext = s.connector.dial
	if setup.Common() {
		s.client.Timeout = setup.Timeout
		s.client.MaxIdleConns = setup.Callers
	}
	if setup.Tuned() {
		// Its documents: a number higher than the peak of parallel requests.
		s.client.MaxIdleConns = setup.Callers + 1
	}
	return s.connector.open(s.client.Ping)
}

func (s *gomemcacheSession) Reconnects() int64 { return s.connector.later.Load() }
func (s *gomemcacheSession) Close()            { _ = s.client.Close() }

func (s *gomemcacheSession) Handlers() Handlers {
	c := s.client
	p := &pool[memcache.Item]{
		get: c.Get, gat: c.GetAndTouch, getMulti: c.GetMulti, set: c.Set, add: c.Add,
		replace: c.Replace, cas: c.CompareAndSwap, delete: c.Delete, touch: c.Touch,
		incr: c.Increment, decr: c.Decrement, ping: c.Ping,
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
	return p.handlers()
}
