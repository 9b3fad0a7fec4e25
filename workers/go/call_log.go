// The call log of docs/call-log.md: a record of each call, written after the run.

package main

import (
	"encoding/base64"
	"encoding/binary"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
)

const (
	callBytes        = 32
	mostCalls        = 1 << 20
	mostWrongReplies = 16
	mostWrongBytes   = 4096
	clockMonotonic   = 1
	callOk, callMiss = 0, 1
	faultToOutcome   = 1 // a fault plus this is its outcome
)

// WrongReply is the library's result for a read whose value was wrong.
type WrongReply struct {
	Record uint64 `json:"record"`
	Value  string `json:"value"`
}

// callLog has the calls of a lane; nil unless the run asked for a call log.
type callLog struct {
	records []byte       // allocated before the window
	count   atomic.Int64 // read by the worker, also while a call of the lane hangs
	wrong   []WrongReply
}

func newCallLog(lanes int) *callLog {
	return &callLog{records: make([]byte, callBytes*(mostCalls/lanes))}
}

// note notes a call of a tape's record.
func (c *callLog) note(op *Op, number uint64, result Result, beganNs, nowNs int64) {
	at := c.count.Load() * callBytes
	if at == int64(len(c.records)) {
		return
	}
	record := c.records[at : at+callBytes]
	binary.LittleEndian.PutUint64(record, uint64(beganNs))
	binary.LittleEndian.PutUint64(record[8:], uint64(nowNs-beganNs))
	binary.LittleEndian.PutUint32(record[16:], uint32(number))
	binary.LittleEndian.PutUint32(record[20:], uint32(result.Values))
	record[26] = outcome(op, result)
	c.count.Add(1)
	if result.Fault == FaultWrongValue && len(c.wrong) < mostWrongReplies {
		value := op.Wrong[:min(len(op.Wrong), mostWrongBytes)]
		c.wrong = append(c.wrong, WrongReply{number, base64.StdEncoding.EncodeToString(value)})
		op.Wrong = nil
	}
}

func outcome(op *Op, result Result) byte {
	switch {
	case result.Fault != NoFault:
		return byte(result.Fault) + faultToOutcome
	case op.Kind.reads() && result.Hits == 0 && result.Misses > 0:
		return callMiss
	}
	return callOk
}

// writeCallLog writes the calls of all lanes.
func writeCallLog(path string, lanes []*lane) error {
	header := binary.LittleEndian.AppendUint32([]byte("CMCALLS\x00"), 1)
	file := binary.LittleEndian.AppendUint32(header, callBytes)
	offset := monotonicNs() - clock()
	for caller, l := range lanes {
		records := append([]byte(nil), l.calls.records[:l.calls.count.Load()*callBytes]...)
		for at := 0; at < len(records); at += callBytes {
			began := int64(binary.LittleEndian.Uint64(records[at:])) + offset
			binary.LittleEndian.PutUint64(records[at:], uint64(began))
			binary.LittleEndian.PutUint16(records[at+24:], uint16(caller))
		}
		file = append(file, records...)
	}
	return os.WriteFile(path, file, 0o644)
}

// wrongReplies are the first wrong values of all lanes.
func wrongReplies(lanes []*lane) []WrongReply {
	found := []WrongReply{}
	for _, l := range lanes {
		if l.calls != nil {
			found = append(found, l.calls.wrong...)
		}
	}
	return found[:min(len(found), mostWrongReplies)]
}

// monotonicNs is the kernel's CLOCK_MONOTONIC, which Go counts from another instant.
func monotonicNs() int64 {
	var now syscall.Timespec
	_, _, _ = syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&now)), 0)
	return now.Nano()
}
