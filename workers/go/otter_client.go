// otter v2, in the worker's own process: a bounded cache (W-TinyLFU) that all callers share. It has
// room for twice the tape's keys, so it evicts nothing, but its policy does its work.
//
// It keeps references to values, and returns the same references. It cannot read several keys at
// once: `mget` is a loop of single reads. Its expiry is a rule of the whole cache: each write renews it.

package main

import (
	"time"

	"github.com/maypok86/otter/v2"
)

func init() {
	register("otter", &Client{
		Library:  "github.com/maypok86/otter/v2",
		Wires:    []string{"none"},
		Features: []string{"threads", "open_loop"},
		New:      func() Session { return &otterSession{} },
		Refuse: func(tape *Tape) string {
			if len(tape.exptimes) > 1 {
				return "one expiry time for all writes only: the whole cache has one"
			}
			return ""
		},
	})
}

type otterSession struct {
	BaseSession
	cache *otter.Cache[string, []byte]
}

func (s *otterSession) Open(setup *Prepare) error {
	options := &otter.Options[string, []byte]{
		MaximumSize: 2 * int(setup.Tape.keyCount), InitialCapacity: int(setup.Tape.keyCount),
	}
	if exptimeS := setup.Tape.exptimeS; exptimeS > 0 {
		lasts := time.Duration(exptimeS) * time.Second
		options.ExpiryCalculator = otter.ExpiryWriting[string, []byte](lasts)
	}
	var err error
	s.cache, err = otter.New(options)
	return err
}

func (s *otterSession) Close() {
	if s.cache != nil {
		s.cache.StopAllGoroutines()
		s.cache.InvalidateAll()
		s.cache.CleanUp() // applies the writes in its buffers
	}
}

func (s *otterSession) Handlers() Handlers {
	var value []byte
	var done bool
	cache := s.cache
	accepted := func(op *Op) Result {
		if done {
			return written(op)
		}
		return refused(op)
	}
	return Handlers{
		Get.kind(false): {
			func(op *Op) { value, done = cache.GetIfPresent(op.Key) },
			func(op *Op) Result { return foundIf(op, value, done) },
		},
		Mget.kind(false): manyOf(func(key string) ([]byte, bool) { return cache.GetIfPresent(key) }),
		Set.kind(false):  {func(op *Op) { cache.Set(op.Key, op.Value) }, written},
		Add.kind(false): {
			func(op *Op) { _, done = cache.SetIfAbsent(op.Key, op.Value) }, accepted,
		},
		Replace.kind(false): {
			func(op *Op) {
				_, done = cache.ComputeIfPresent(op.Key, func([]byte) ([]byte, otter.ComputeOp) {
					return op.Value, otter.WriteOp
				})
			}, accepted,
		},
		Delete.kind(false): {
			func(op *Op) { _, done = cache.Invalidate(op.Key) },
			func(*Op) Result { return existedIf(done) },
		},
	}
}
