// The tape: its tables, checked before they are trusted.
//
// It is in memory outside of the Go heap: with a tape of 100 MB on the heap, the collector would run
// a hundred times less often than in a real program.

package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
)

const (
	tapeVersion = 2
	headerBytes = 184
	counterText = "1000000000" // the stored text of each counter
)

// Record is an operation on the tape.
type Record struct {
	Verb     Verb
	Flags    uint8
	Run      uint16
	Key      uint32
	Length   uint32
	ExptimeS uint32
}

func (r *Record) kind() Kind { return r.Verb.kind(r.Flags&1 != 0) }

// Tape is a tape whose every table has been checked.
type Tape struct {
	data      []byte
	keyCount  uint64
	prefilled uint64
	poolBytes uint64
	periodNs  uint64
	exptimeS  uint64
	group     uint64
	verified  bool
	thinks    bool // callers think between operations
	fixed     bool // each write of a key has the key's length in the table
	counterAt uint64
	lanes     uint64 // number of lanes that the generations are for; 0: there are none
	// Whether a read may bring any generation: a failed write may still arrive.
	anyGeneration atomic.Bool
	filled        bool // a prefill has begun

	offsets []uint32
	keys    []byte
	lengths []uint32
	pool    []byte
	runs    []uint32
	records []Record
	times   []uint64

	kinds    [kindCount]bool
	exptimes map[uint32]bool // of all writes, including the prefill's
	longest  int             // most keys in one operation
}

type tapeError struct {
	what string
	at   uint64
}

func (e *tapeError) Error() string {
	return fmt.Sprintf("the tape has %s (at byte %d)", e.what, e.at)
}

func check(holds bool, what string, at uint64) {
	if !holds {
		panic(&tapeError{what, at})
	}
}

// header has the first 184 bytes, in the layout of the file.
type header struct {
	magic                                              [8]byte
	version, headerBytes                               uint32
	fileBytes, seed, keyCount, prefilled, ops, runs    uint64
	poolBytes, periodNs, offsetsAt, keysAt, keyBytes   uint64
	lengthsAt, poolAt, opsAt, runsAt, timesAt, exptime uint64
	flags, group, counters, thinksAt                   uint64
}

// readTape reads and checks a file. Its error is a *tapeError if the file is no tape.
func readTape(path string) (tape *Tape, err error) {
	data, err := readAside(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if failure := recover(); failure != nil {
			_ = syscall.Munmap(data)
			refused, ok := failure.(*tapeError)
			if !ok {
				panic(failure)
			}
			tape, err = nil, refused
		}
	}()
	tape = &Tape{data: data, exptimes: map[uint32]bool{}, fixed: true, longest: 1}
	tape.read()
	return tape, nil
}

// readAside reads a file into memory that is not on the heap.
func readAside(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	facts, err := file.Stat()
	if err != nil {
		return nil, err
	}
	size := int(facts.Size())
	if !facts.Mode().IsRegular() || size < headerBytes {
		return nil, &tapeError{fmt.Sprintf("no header of %d bytes", headerBytes), 0}
	}
	data, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	for have := 0; have < size; {
		n, err := file.Read(data[have:])
		if err != nil {
			_ = syscall.Munmap(data)
			return nil, err
		}
		have += n
	}
	return data, nil
}

func (t *Tape) read() {
	check(binary.NativeEndian.Uint16([]byte{1, 0}) == 1, "little-endian numbers, this machine not", 0)
	h := (*header)(unsafe.Pointer(&t.data[0]))
	check(string(h.magic[:]) == "CMTAPE\x00\x00", "no magic", 0)
	check(h.version == tapeVersion, fmt.Sprintf("another version than %d", tapeVersion), 8)
	check(h.headerBytes == headerBytes, "a header of another length", 12)
	check(h.fileBytes == uint64(len(t.data)), "another length than it says", 16)
	check(h.keyCount > 0 && h.keyCount < 1<<32, "no possible number of keys", 32)
	check(h.prefilled <= h.keyCount, "more keys to store than it has", 40)
	check(h.ops > 0, "no operations", 48)
	check(h.exptime < 1<<32, "no possible expiry time", 144)
	check(h.flags&0xFFFFFFFE == 0, "unknown flags", 152)
	check(h.group > 0 && h.ops%h.group == 0, "records that are no whole number of groups", 160)
	check(h.counters <= h.keyCount, "more counters than keys", 168)
	check((h.timesAt > 0) == (h.periodNs > 0), "times without a period, or a period without times", 72)
	check(h.timesAt == 0 || h.thinksAt == 0, "both times and think times", 176)
	t.keyCount, t.prefilled, t.poolBytes, t.periodNs = h.keyCount, h.prefilled, h.poolBytes, h.periodNs
	t.exptimeS, t.group, t.verified = h.exptime, h.group, h.flags&1 == 0
	t.counterAt, t.lanes = h.keyCount-h.counters, h.flags>>32
	t.thinks = h.thinksAt != 0

	t.offsets = table[uint32](t.data, 80, h.keyCount+1)
	t.keys = table[byte](t.data, 88, h.keyBytes)
	t.lengths = table[uint32](t.data, 104, h.keyCount)
	t.pool = table[byte](t.data, 112, h.poolBytes)
	t.runs = table[uint32](t.data, 128, h.runs)
	t.records = table[Record](t.data, 120, h.ops)
	t.checkKeys(h)
	t.checkRecords(h)
	if t.thinks {
		table[uint64](t.data, 176, h.ops)
	}
	if h.timesAt != 0 {
		t.times = table[uint64](t.data, 136, h.ops)
		for j, due := range t.times {
			later := (j == 0 || due >= t.times[j-1]) && due < t.periodNs
			check(later, "times out of order", h.timesAt+8*uint64(j))
		}
	}
}

// table is a section of the file as numbers. It begins where the header's field at `fieldAt` says. The
// file is mapped, so it begins at a page.
func table[T any](data []byte, fieldAt, count uint64) []T {
	var one T
	at := binary.LittleEndian.Uint64(data[fieldAt:])
	size := uint64(unsafe.Sizeof(one))
	whole := uint64(len(data))
	inside := at >= headerBytes && at%8 == 0 && at <= whole && count <= (whole-at)/size
	check(inside, "a section outside the file", fieldAt)
	if count == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&data[at])), count)
}

func (t *Tape) checkKeys(h *header) {
	for k := uint64(0); k < h.keyCount; k++ {
		from, to, at := t.offsets[k], t.offsets[k+1], h.offsetsAt+4*k
		check(from < to && to-from <= 250, "a key of a wrong length", at)
		check(uint64(to) <= h.keyBytes, "a key outside its table", at)
		check(uint64(t.lengths[k]) <= h.poolBytes, "a length beyond the pool", h.lengthsAt+4*k)
		counter := k >= t.counterAt && t.lengths[k] != uint32(len(counterText))
		check(!counter, "a counter of another length", h.lengthsAt+4*k)
	}
	for at, c := range t.keys {
		clean := c > ' ' && c != 0x7f
		check(clean, "a key with white space or a control character", h.keysAt+uint64(at))
	}
	for at, k := range t.runs {
		check(uint64(k) < h.keyCount, "a run of unknown keys", h.runsAt+4*uint64(at))
	}
}

// checkRecords also collects the kinds and settings that the tape needs.
func (t *Tape) checkRecords(h *header) {
	t.exptimes[uint32(t.exptimeS)] = true
	for j := range t.records {
		r, at := &t.records[j], h.opsAt+16*uint64(j)
		check(r.Verb.known(), fmt.Sprintf("an unknown verb %d", r.Verb), at)
		facts := &verbs[r.Verb]
		check(r.Flags&1 == 0 || facts.quiet, "bad flags", at)
		check(r.generation() == 0 || t.mayHaveGeneration(r), "bad flags", at)
		limit, least := h.keyCount, uint16(1)
		if facts.batch {
			limit = h.runs
		} else if r.Verb == Version {
			least = 0
		}
		check(r.Run == least || r.Run > 1 && facts.batch, "a wrong run", at)
		check(r.Run == 0 || uint64(r.Key)+uint64(r.Run) <= limit, "an unknown key", at)
		check(facts.valueless || uint64(r.Length) <= h.poolBytes, "a length beyond the pool", at)
		for i := 0; i < int(r.Run); i++ {
			counter := uint64(t.index(r, i)) >= t.counterAt
			step := r.Verb == Incr || r.Verb == Decr
			check(counter || !step, "a counter's verb on another key", at)
			check(!counter || facts.counters, "another verb on a counter", at)
		}
		t.learn(r, facts)
	}
}

func (t *Tape) learn(r *Record, facts *verbFacts) {
	t.kinds[r.kind()] = true
	t.longest = max(t.longest, int(r.Run))
	switch r.Verb {
	case Set, Add, Replace, Cas:
		t.fixed = t.fixed && r.Length == t.lengths[r.Key]
		t.exptimes[r.ExptimeS] = true
	case Mset, Touch, Gat:
		t.exptimes[r.ExptimeS] = true
	}
}

// index is the number of an operation's key in place i.
func (t *Tape) index(r *Record, i int) uint32 {
	if verbs[r.Verb].batch {
		return t.runs[int(r.Key)+i]
	}
	return r.Key
}

// key is a key's text, without a copy of it.
func (t *Tape) key(k uint32) string {
	from, to := t.offsets[k], t.offsets[k+1]
	return unsafe.String(&t.keys[from], to-from)
}

// close returns the memory; the caller must have released all keys and values.
func (t *Tape) close() { _ = syscall.Munmap(t.data) }

// stored tells whether the prefill stores a key.
func (t *Tape) stored(k uint32) bool { return uint64(k) < t.prefilled }

// own is the prefill's value of a key.
func (t *Tape) own(k uint32) []byte {
	if uint64(k) >= t.counterAt {
		return []byte(counterText)
	}
	return t.value(k, int(t.lengths[k]), 0)
}
