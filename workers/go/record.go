// What a lane notes while it is measured, and the sum over the lanes.
//
// Counts and histograms are filled as it goes, since a cache in the process would fill gigabytes of
// single notes. All of it is allocated before the window.

package main

import (
	"maps"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

const (
	lowestNs  = 1
	highestNs = 100_000_000_000
	digits    = 3
)

// Tally is what one kind of operation came to in one lane.
type Tally struct {
	attempts, ok, hits, misses, notStored, wrong int64
	keys, valueBytes, keyBytes, busyNs           int64
	errors                                       [faultCount]int64
	service                                      *hdr.Histogram
	response                                     *hdr.Histogram // of an open loop
}

func newTally(open bool) *Tally {
	tally := &Tally{service: newHistogram()}
	if open {
		tally.response = newHistogram()
	}
	return tally
}

func newHistogram() *hdr.Histogram { return hdr.New(lowestNs, highestNs, digits) }

// put records a time; one beyond the bounds counts as the bound.
func put(h *hdr.Histogram, ns int64) { _ = h.RecordValue(min(max(ns, lowestNs), highestNs)) }

// note counts an operation: the time in its call, and how long after its due instant that began.
func (t *Tally) note(op *Op, result Result, serviceNs, lagNs int64) {
	t.attempts++
	if result.Fault == Fine || result.Fault == TimedOut {
		put(t.service, serviceNs)
		if t.response != nil {
			put(t.response, lagNs+serviceNs)
		}
	}
	switch result.Fault {
	case Fine:
		t.ok++
		t.hits += int64(result.Hits)
		t.misses += int64(result.Misses)
		t.notStored += int64(result.NotStored)
		t.valueBytes += int64(result.Values)
		t.busyNs += serviceNs
		t.noteKeys(op)
	case Wrong:
		t.wrong++
	default:
		t.errors[result.Fault]++
	}
}

func (t *Tally) noteKeys(op *Op) {
	t.keys += int64(op.Record.Run)
	if len(op.Keys) == 0 {
		t.keyBytes += int64(len(op.Key))
	}
	for _, key := range op.Keys {
		t.keyBytes += int64(len(key))
	}
}

func (t *Tally) add(other *Tally) {
	t.attempts += other.attempts
	t.ok += other.ok
	t.hits += other.hits
	t.misses += other.misses
	t.notStored += other.notStored
	t.wrong += other.wrong
	t.keys += other.keys
	t.valueBytes += other.valueBytes
	t.keyBytes += other.keyBytes
	t.busyNs += other.busyNs
	for fault, count := range other.errors {
		t.errors[fault] += count
	}
	t.service.Merge(other.service)
	if t.response != nil {
		t.response.Merge(other.response)
	}
}

func (t *Tally) message() (*Operation, error) {
	told := &Operation{
		Attempts: t.attempts, OK: t.ok, Hits: t.hits, Misses: t.misses, NotStored: t.notStored,
		WrongValues: t.wrong, Keys: t.keys, ValueBytes: t.valueBytes, KeyBytes: t.keyBytes,
		BusyNs: t.busyNs, Errors: map[string]int64{},
	}
	for fault, count := range t.errors {
		if count > 0 {
			told.Errors[faultNames[fault]] = count
		}
	}
	var err error
	if told.Service, err = encode(t.service); err != nil {
		return nil, err
	}
	told.Response = told.Service // in a closed loop the two are the same samples
	if t.response != nil {
		told.Response, err = encode(t.response)
	}
	return told, err
}

// encode is a histogram as it travels; nil if there is nothing in it.
func encode(h *hdr.Histogram) (*string, error) {
	if h == nil || h.TotalCount() == 0 {
		return nil, nil
	}
	bytes, err := h.Encode(hdr.V2CompressedEncodingCookieBase)
	if err != nil {
		return nil, err
	}
	text := string(bytes)
	return &text, nil
}

// sum is the operations of all lanes by kind, as they are sent.
func sum(lanes []*lane, open bool) (map[string]*Operation, error) {
	whole := map[Kind]*Tally{}
	for _, l := range lanes {
		for kind, tally := range l.tallies {
			if tally == nil || tally.attempts == 0 && (tally.response == nil || tally.response.TotalCount() == 0) {
				continue
			}
			if whole[Kind(kind)] == nil {
				whole[Kind(kind)] = newTally(open)
			}
			whole[Kind(kind)].add(tally)
		}
	}
	told := map[string]*Operation{}
	for kind := range maps.Keys(whole) {
		message, err := whole[kind].message()
		if err != nil {
			return nil, err
		}
		told[kind.String()] = message
	}
	return told, nil
}
