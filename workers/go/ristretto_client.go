// ristretto v2, in the worker's own process: a bounded cache (TinyLFU) that all callers share. It
// has room for twice the tape's keys, each of cost 1.
//
// The cache only queues a set of a new key: a read that follows may miss it, and a full queue drops
// it. A dropped set is an error `client` here. The prefill waits when the queue may be full, and each
// run ends with a wait until the queue is empty, which `elapsed_ns` includes. The cache cannot add,
// replace, or say whether a deleted key was there. It cannot read several keys at once: `mget` is a
// loop of single reads. It distinguishes keys by a hash of 128 bits, and keeps references to values.

package main

import (
	"time"

	"github.com/dgraph-io/ristretto/v2"
)

// Its queue has 32 768 places; a wait well before that is never late, with any number of callers.
const ristrettoBurst = 64

func init() {
	register("ristretto", &Client{
		Library:  "github.com/dgraph-io/ristretto/v2",
		Wires:    []string{"none"},
		Features: []string{"threads", "open_loop"},
		New:      func() Session { return &ristrettoSession{} },
	})
}

type ristrettoSession struct {
	cache *ristretto.Cache[string, []byte]
}

func (s *ristrettoSession) Open(setup *Prepare) error {
	room := 2 * int64(setup.Tape.keyCount)
	var err error
	s.cache, err = ristretto.NewCache(&ristretto.Config[string, []byte]{
		NumCounters: 10 * room, MaxCost: room, IgnoreInternalCost: true,
		BufferItems: 64, // as its documentation recommends
	})
	return err
}

func (s *ristrettoSession) Flush() bool {
	s.cache.Wait()
	return true
}

func (s *ristrettoSession) Reconnects() int64 { return 0 }

func (s *ristrettoSession) Close() {
	if s.cache != nil {
		s.cache.Close()
	}
}

func (s *ristrettoSession) Handlers() Handlers {
	var value []byte
	var done bool
	cache, queued := s.cache, 0
	return Handlers{
		Get.kind(false): {
			func(op *Op) { value, done = cache.Get(op.Key) },
			func(op *Op) Result { return foundIf(op, value, done) },
		},
		Mget.kind(false): manyOf(func(key string) ([]byte, bool) { return cache.Get(key) }),
		Set.kind(false): {
			func(op *Op) {
				expires := time.Duration(op.ExptimeS) * time.Second
				done = cache.SetWithTTL(op.Key, op.Value, 1, expires)
			},
			func(op *Op) Result {
				if queued++; op.Prefill && queued%ristrettoBurst == 0 {
					cache.Wait()
				}
				if !done {
					return failed(FaultClient)
				}
				return written(op)
			},
		},
	}
}
