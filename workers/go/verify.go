// The result of a reply.

package main

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
)

// Fault is the kind of a failure; docs/fault-kinds.md defines the kinds.
type Fault uint8

// The faults; the first is none.
const (
	NoFault Fault = iota
	FaultWrongValue
	FaultTimeout
	FaultConnection
	FaultServer
	FaultClient
	FaultProtocol
	faultCount
)

// The errors' names in `done`; NoFault and FaultWrongValue are not among them.
var faultNames = [faultCount]string{
	FaultTimeout: "timeout", FaultConnection: "connection", FaultServer: "server", FaultClient: "client",
	FaultProtocol: "protocol",
}

// Result is the result of a call.
type Result struct {
	Fault             Fault
	Hits, Misses      int
	NotStored, Values int // Values: bytes read or written
}

func failed(fault Fault) Result { return Result{Fault: fault} }

var missed = Result{Misses: 1}

// otherFlags replaces a value with other flags than 0: it equals no value of the tape.
var otherFlags = []byte("other flags than 0")

// plain is a value that was read, if its flags are 0, as in all items of cachemark.
func plain(value []byte, flags uint32) []byte {
	if flags != 0 {
		return otherFlags
	}
	return value
}

// found judges a value that was read.
func found(op *Op, value []byte) Result {
	if !op.Tape.right(op.Record.Key, value, op.Record.generation()) {
		op.Wrong = value
		return failed(FaultWrongValue)
	}
	return Result{Hits: 1, Values: len(value)}
}

// foundMany judges a read of many keys: `look` returns a key's value, `count` is the number of values.
func foundMany(op *Op, count int, look func(i int) ([]byte, bool)) Result {
	var result Result
	for i := range op.Keys {
		value, there := look(i)
		if !there {
			result.Misses++
			continue
		}
		if !op.Tape.right(op.index(i), value, op.told(i)) {
			return failed(FaultWrongValue)
		}
		result.Hits++
		result.Values += len(value)
	}
	if result.Hits < count { // the reply has keys that the call did not ask for
		return failed(FaultWrongValue)
	}
	return result
}

// written judges a write that was done.
func written(op *Op) Result { return Result{Values: len(op.Value)} }

// refused judges an add, a replace or a cas with the answer `not stored`.
func refused(op *Op) Result { return Result{NotStored: 1, Values: len(op.Value)} }

// network is the fault behind an error of Go's net package; NoFault if there is no such fault.
func networkFault(err error) Fault {
	var failure net.Error
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &failure) && failure.Timeout():
		return FaultTimeout
	case errors.As(err, &failure), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return FaultConnection
	}
	return NoFault
}

// reply is the fault behind an answer of the server, which a library puts into an error's text.
func replyFault(text string) Fault {
	switch {
	case strings.Contains(text, "SERVER_ERROR"):
		return FaultServer
	case strings.Contains(text, "ERROR"):
		return FaultClient
	}
	return FaultProtocol
}

// swapped judges a cas whose read found the key.
func swapped(op *Op, stored bool) Result {
	result := Result{Hits: 1, Values: len(op.Value)}
	if !stored {
		result.NotStored = 1
	}
	return result
}

func foundIf(op *Op, value []byte, there bool) Result {
	if !there {
		return missed
	}
	return found(op, value)
}

func existedIf(there bool) Result {
	if !there {
		return missed
	}
	return Result{Hits: 1}
}

// manyOf reads many keys with a loop of single reads, for a cache without such a call.
func manyOf(get func(key string) ([]byte, bool)) Handler {
	type answer struct {
		value []byte
		there bool
	}
	var answers []answer
	return Handler{
		Call: func(op *Op) {
			answers = answers[:0]
			for _, key := range op.Keys {
				value, there := get(key)
				answers = append(answers, answer{value, there})
			}
		},
		Verify: func(op *Op) Result {
			return foundMany(op, 0, func(i int) ([]byte, bool) { return answers[i].value, answers[i].there })
		},
	}
}
