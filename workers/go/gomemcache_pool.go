// The common part of both gomemcaches: the same calls, with types of their own.
//
// One `Client` serves all callers, as in Go programs. Its pool has room for one connection for each
// caller, so that each caller always finds an idle one. The library sends `gets` for every read,
// spreads keys over servers by CRC-32 modulo their number, and closes a failed connection; the next
// call opens another. It has no operations without a reply.

package main

import (
	"context"
	"errors"
)

// The options of both. The library has only its own way to spread keys.
var poolOptions = map[string][]string{
	"profile": {"common", "defaults", "tuned"},
	"hashing": {"default"},
}

// pool is a library's calls and errors; I is its item.
type pool[I any] struct {
	get      func(key string) (*I, error)
	gat      func(key string, exptimeS int32) (*I, error)
	getMulti func(keys []string) (map[string]*I, error)
	set      func(item *I) error
	add      func(item *I) error
	replace  func(item *I) error
	cas      func(item *I) error
	delete   func(key string) error
	touch    func(key string, exptimeS int32) error
	incr     func(key string, amount uint64) (uint64, error)
	decr     func(key string, amount uint64) (uint64, error)
	ping     func() error

	item  func(op *Op) *I // makes a new item, in the timed part: every program has to make one
	renew func(item *I, op *Op)
	value func(item *I) []byte

	miss, notStored, conflict, malformed, noServers error
}

// poolLane is one caller; it has the answer of the last call.
type poolLane[I any] struct {
	*pool[I]
	read  *I
	reads map[string]*I
	err   error
}

func (p *pool[I]) handlers() Handlers {
	l := &poolLane[I]{pool: p}
	read := Handler{func(op *Op) { l.read, l.err = p.get(op.Key) }, l.found}
	write := func(call func(item *I) error, verify func(op *Op) Result) Handler {
		return Handler{func(op *Op) { l.err = call(p.item(op)) }, verify}
	}
	handlers := Handlers{
		Get.kind(false):     read,
		Gets.kind(false):    read,
		Mget.kind(false):    {func(op *Op) { l.reads, l.err = p.getMulti(op.Keys) }, l.foundMany},
		Set.kind(false):     write(p.set, l.written),
		Add.kind(false):     write(p.add, l.accepted),
		Replace.kind(false): write(p.replace, l.accepted),
		Cas.kind(false):     {l.swap, l.swapped},
		Delete.kind(false):  {func(op *Op) { l.err = p.delete(op.Key) }, l.known},
		Touch.kind(false):   {func(op *Op) { l.err = p.touch(op.Key, int32(op.ExptimeS)) }, l.known},
		Incr.kind(false):    {func(op *Op) { _, l.err = p.incr(op.Key, op.Amount) }, l.known},
		Decr.kind(false):    {func(op *Op) { _, l.err = p.decr(op.Key, op.Amount) }, l.known},
		Version.kind(false): {func(*Op) { l.err = p.ping() }, l.written},
	}
	if p.gat != nil {
		handlers[Gat.kind(false)] = Handler{
			func(op *Op) { l.read, l.err = p.gat(op.Key, int32(op.ExptimeS)) }, l.found,
		}
	}
	return handlers
}

// swap is a read, then a write with its token; without an item there is no write.
func (l *poolLane[I]) swap(op *Op) {
	if l.read, l.err = l.get(op.Key); l.err != nil {
		l.read = nil
		return
	}
	item := *l.read
	l.renew(&item, op)
	l.err = l.cas(&item)
}

func (l *poolLane[I]) found(op *Op) Result {
	switch l.err {
	case nil:
		return found(op, l.value(l.read))
	case l.miss:
		return missed
	}
	return l.failure()
}

func (l *poolLane[I]) foundMany(op *Op) Result {
	if l.err != nil {
		return l.failure()
	}
	return foundMany(op, len(l.reads), func(i int) ([]byte, bool) {
		item, there := l.reads[op.Keys[i]]
		if !there {
			return nil, false
		}
		return l.value(item), true
	})
}

func (l *poolLane[I]) written(op *Op) Result {
	if l.err != nil {
		return l.failure()
	}
	return written(op)
}

func (l *poolLane[I]) accepted(op *Op) Result {
	if l.err == l.notStored {
		return refused(op)
	}
	return l.written(op)
}

func (l *poolLane[I]) swapped(op *Op) Result {
	switch {
	case l.read == nil && l.err == l.miss:
		return missed
	case l.read == nil:
		return l.failure()
	case !op.Tape.right(op.Record.Key, l.value(l.read), op.Record.generation()):
		return failed(FaultWrongValue)
	case l.err == nil:
		return swapped(op, true)
	case l.err == l.conflict, l.err == l.notStored, l.err == l.miss:
		return swapped(op, false)
	}
	return l.failure()
}

func (l *poolLane[I]) known(*Op) Result {
	switch l.err {
	case nil:
		return Result{Hits: 1}
	case l.miss:
		return missed
	}
	return l.failure()
}

func (l *poolLane[I]) failure() Result {
	switch fault := networkFault(l.err); {
	case fault != NoFault:
		return failed(fault)
	case errors.Is(l.err, context.DeadlineExceeded):
		return failed(FaultTimeout)
	case l.err == l.malformed:
		return failed(FaultClient)
	case l.err == l.noServers:
		return failed(FaultConnection)
	}
	return failed(replyFault(l.err.Error()))
}
