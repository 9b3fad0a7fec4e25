// A lane: one goroutine that plays its records of the tape, and notes what they came to.

package main

import (
	"math"
	"sync/atomic"
)

// How often a lane says how far it is; the worker tells it on once a second.
const reportEveryNs = 100_000_000

// lane plays every group of records whose turn is its own.
type lane struct {
	tape      *Tape
	place     uint64 // of `lanes`
	lanes     uint64
	steps     [kindCount]Handler
	flush     func() bool
	timeoutNs int64 // a call that lasts so long is a timeout

	// The run that is going on.
	prefill bool
	at      uint64 // number of the next record, or in the prefill of the next key
	passNs  int64  // window's start, moved by the period with each pass
	left    int64  // operations that it may still make
	op      Op
	record  Record // the prefill's
	names   []string
	open    bool

	sections                   [][kindCount]*Recorder // one for each part of the window, or one for all of it
	recorders                  *[kindCount]*Recorder  // of the section that is going on
	timeline                   *timeline
	lags                       *Histogram
	sentNs                     int64
	endedNs                    int64
	queued                     int64
	unsent                     int64
	peak                       int64
	played                     int64
	faults                     int64
	nextReportNs               int64
	reportedOk, reportedFailed atomic.Int64 // of other goroutines to read
	alive                      atomic.Int64 // when it was last seen between two calls
}

func newLane(tape *Tape, place, lanes int, session Session, timeoutNs int64) *lane {
	l := &lane{
		tape: tape, place: uint64(place), lanes: uint64(lanes), flush: session.Flush, timeoutNs: timeoutNs,
	}
	for kind, steps := range session.Handlers() {
		l.steps[kind] = steps
	}
	l.op.Tape = tape
	l.names = make([]string, tape.longest)
	return l
}

// ready begins a run; all that it will note into is made here.
func (l *lane) ready(prefill bool, limit int64, window *Window) {
	l.prefill, l.left, l.passNs = prefill, limit, window.startNs
	l.open = l.tape.times != nil && !prefill
	l.at = l.place * l.tape.group
	if prefill {
		l.at = l.place
	}
	l.free()
	l.timeline = newTimeline(window.startNs, window.durationNs)
	l.sections = make([][kindCount]*Recorder, 1)
	if l.timeline.sliceNs > 0 {
		l.sections = make([][kindCount]*Recorder, sectionCount)
	}
	for section := range l.sections {
		for kind := range kindCount {
			wanted := l.tape.kinds[kind] && !prefill || prefill && Kind(kind) == Set.kind(false)
			if wanted {
				l.sections[section][kind] = newRecorder(l.open)
			}
		}
	}
	l.recorders = &l.sections[0]
	l.lags = nil
	if l.open {
		l.lags = newHistogram()
	}
	l.sentNs, l.endedNs = window.startNs, window.startNs
	l.queued, l.unsent, l.peak, l.played, l.faults = 0, 0, 0, 0, 0
	l.nextReportNs = 0
	l.reportedOk.Store(0)
	l.reportedFailed.Store(0)
	l.alive.Store(window.startNs)
}

// free gives back what the last run was noted into.
func (l *lane) free() {
	l.lags.free()
	for _, recorders := range l.sections {
		for _, recorder := range recorders {
			if recorder != nil {
				recorder.free()
			}
		}
	}
	l.sections, l.lags = nil, nil
}

// next makes the lane's next operation ready; false if there is none.
func (l *lane) next() bool {
	if l.left == 0 {
		return false
	}
	l.left--
	if l.prefill {
		return l.nextKey()
	}
	if l.at >= uint64(len(l.tape.records)) {
		l.at = l.place * l.tape.group
		l.passNs += int64(l.tape.periodNs)
		if l.at >= uint64(len(l.tape.records)) {
			return false // fewer groups than lanes
		}
	}
	l.fill(&l.tape.records[l.at])
	return true
}

// advance goes to the lane's next key, or its next record, which may be in its next group.
func (l *lane) advance() {
	if l.prefill {
		l.at += l.lanes
		return
	}
	l.at++
	if l.at%l.tape.group == 0 {
		l.at += (l.lanes - 1) * l.tape.group
	}
}

func (l *lane) nextKey() bool {
	if l.at >= l.tape.prefilled {
		return false
	}
	k := uint32(l.at)
	l.record = Record{Verb: Set, Run: 1, Key: k, Length: l.tape.lengths[k], ExptimeS: uint32(l.tape.exptimeS)}
	l.fill(&l.record)
	if l.at >= l.tape.counterAt {
		l.op.Value = []byte(counterText)
	}
	return true
}

func (l *lane) fill(r *Record) {
	op, facts := &l.op, &verbs[r.Verb]
	op.Record, op.Kind, op.Prefill, op.ExptimeS = r, r.kind(), l.prefill, r.ExptimeS
	op.Key, op.Value, op.Keys = "", nil, nil
	switch {
	case facts.batch:
		op.Keys = l.names[:r.Run]
		for i := range op.Keys {
			op.Keys[i] = l.tape.key(op.index(i))
		}
	case r.Run == 1:
		op.Key = l.tape.key(r.Key)
	}
	switch r.Verb {
	case Set, Add, Replace, Cas:
		op.Value = l.tape.value(r.Key, int(r.Length))
	case Incr, Decr:
		op.Amount = uint64(r.Length)
	}
}

// play runs from the window's start to its end. An open loop counts its calls in `active`.
func (l *lane) play(window *Window, active *atomic.Int64) {
	defer l.alive.Store(math.MaxInt64) // nobody has to wait for it any more
	if _, waited := window.waitUntil(window.startNs, &l.alive); !waited {
		return
	}
	if l.open {
		l.openLoop(window, active)
	} else {
		l.closedLoop(window)
	}
	l.endedNs = l.sentNs
	if l.flush() {
		l.endedNs = clock()
	}
	l.report(l.endedNs)
}

// closedLoop makes call after call until the window ends.
func (l *lane) closedLoop(window *Window) {
	now := clock()
	for now < window.endNs.Load() && l.next() {
		now = l.call(0, false)
		l.advance()
	}
}

// openLoop makes each call when it is due, or as soon after that as this lane is free.
func (l *lane) openLoop(window *Window, active *atomic.Int64) {
	for l.next() {
		due := l.passNs + int64(l.tape.times[l.at])
		if due >= window.endNs.Load() {
			return
		}
		busy := l.played > 0 && l.sentNs > due // the call before took until after this one was due
		now, waited := window.waitUntil(due, &l.alive)
		if !waited || now >= window.drainNs() {
			l.noteUnsent(due, window)
			return
		}
		if busy {
			l.queued++
		}
		l.peak = max(l.peak, active.Add(1))
		l.call(due, true)
		active.Add(-1)
		l.advance()
	}
}

// call makes the operation that is ready, and notes it; the instant of its end.
func (l *lane) call(due int64, open bool) int64 {
	steps := &l.steps[l.op.Kind]
	began := clock()
	steps.Call(&l.op)
	now := clock()
	result := steps.Verify(&l.op)
	if now-began >= l.timeoutNs {
		result = failed(FaultTimeout)
	}
	lag := int64(0)
	if open {
		lag = began - due
		l.lags.put(lag)
	}
	if now >= l.timeline.endNs {
		l.recorders = &l.sections[l.timeline.advance(now)]
	}
	l.recorders[l.op.Kind].note(&l.op, result, now-began, lag)
	l.played++
	if result.Fault == NoFault {
		l.timeline.note(lag + now - began)
	} else {
		l.faults++
	}
	l.sentNs = now
	if now >= l.nextReportNs {
		l.report(now)
	}
	return now
}

func (l *lane) report(now int64) {
	l.reportedOk.Store(l.played - l.faults)
	l.reportedFailed.Store(l.faults)
	l.alive.Store(now)
	l.nextReportNs = now + reportEveryNs
}

// noteUnsent notes what was due in the window and will not be sent: it waited at least until now.
func (l *lane) noteUnsent(due int64, window *Window) {
	now := clock()
	end := min(window.endNs.Load(), now)
	for due < end {
		l.recorders[l.op.Kind].response.put(now - due)
		l.unsent++
		l.advance()
		if !l.next() {
			return
		}
		due = l.passNs + int64(l.tape.times[l.at])
	}
}

// part is how much of a total falls to one of so many parts; without a total it is endless.
func part(total *int64, number, parts int) int64 {
	if total == nil {
		return math.MaxInt64
	}
	share, rest := *total/int64(parts), *total%int64(parts)
	if int64(number) < rest {
		share++
	}
	return share
}
