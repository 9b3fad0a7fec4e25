// The kinds of operation: a verb of the tape, with or without a reply.

package main

// Verb is the first byte of a record.
type Verb uint8

// The verbs of tape version 2; only the native client plays 12, 13, 17 and 20.
const (
	Get Verb = iota + 1
	Gets
	Mget
	Set
	Add
	Replace
	Delete
	Touch
	Gat
	Version
	Mset
	_
	_
	Cas
	Incr
	Decr
)

type verbFacts struct {
	name      string
	quiet     bool // may have no reply
	batch     bool // names a run of keys
	valueless bool // its `length` is not the length of a value
	counters  bool // allowed on a counter
}

var verbs = [...]verbFacts{
	Get:     {name: "get"},
	Gets:    {name: "gets"},
	Mget:    {name: "mget", batch: true},
	Set:     {name: "set", quiet: true},
	Add:     {name: "add", quiet: true},
	Replace: {name: "replace", quiet: true},
	Delete:  {name: "delete", quiet: true, valueless: true, counters: true},
	Touch:   {name: "touch", quiet: true, valueless: true},
	Gat:     {name: "gat"},
	Version: {name: "version", valueless: true, counters: true},
	Mset:    {name: "mset", quiet: true, batch: true},
	Cas:     {name: "cas"},
	Incr:    {name: "incr", quiet: true, valueless: true, counters: true},
	Decr:    {name: "decr", quiet: true, valueless: true, counters: true},
}

// Kind is a verb; the lowest bit says that there is no reply.
type Kind uint8

const kindCount = 2 * len(verbs)

func (v Verb) known() bool { return int(v) < len(verbs) && verbs[v].name != "" }

func (v Verb) kind(quiet bool) Kind {
	if quiet {
		return Kind(v)<<1 | 1
	}
	return Kind(v) << 1
}

func (k Kind) verb() Verb { return Verb(k >> 1) }

func (k Kind) String() string {
	if k&1 == 1 {
		return verbs[k>>1].name + "_noreply"
	}
	return verbs[k>>1].name
}

// reads tells whether the kind brings values.
func (k Kind) reads() bool {
	switch k.verb() {
	case Get, Gets, Mget, Gat:
		return true
	}
	return false
}
