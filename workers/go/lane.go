// A lane: one goroutine that plays its records of the tape, and notes their results.

package main

import (
	"math"
	"sync/atomic"
)

// The interval at which a lane publishes its progress; the worker reports it once a second.
const reportEveryNs = 100_000_000

// lane plays its share of the tape's groups.
type lane struct {
	tape      *Tape
	place     uint64 // of `lanes`
	lanes     uint64
	own       [kindCount]Handler // the handlers of the library
	steps     [kindCount]Handler // the same, or handlers that give up calls
	flush     func() bool
	renewal   *renewal // nil: it keeps its connections
	givesUp   *GiveUp  // nil: it gives up no calls
	givenUp   int64    // calls that could have been given up
	timeoutNs int64    // a longer call is a timeout
	inProcess bool     // its client has no server

	// The current run.
	prefill bool
	at      uint64 // number of the next record, or in the prefill of the next key
	passNs  int64  // window's start, moved by the period with each pass
	left    int64  // operations that it may still play
	op      Op
	record  Record // the current record of the prefill
	names   []string
	open    bool

	sections                   [][kindCount]*Recorder // one for each part of the window, or one for all of it
	leadIn                     [kindCount]*Recorder   // the lead-ins of slices, which do not count
	recorders                  *[kindCount]*Recorder  // of the current section, or of the lead-in
	timeline                   *timeline
	lags                       *Histogram
	groups                     *groups
	calls                      *callLog
	sentNs                     int64
	endedNs                    int64
	queued                     int64
	unsent                     int64
	peak                       int64
	played                     int64
	faults                     int64
	slice                      laneSlice
	nextReportNs               int64
	reportedOk, reportedFailed atomic.Int64 // for other goroutines
	alive                      atomic.Int64 // its last instant between two calls
}

func newLane(tape *Tape, place, lanes int, session Session, timeoutNs int64) *lane {
	l := &lane{tape: tape, place: uint64(place), lanes: uint64(lanes), timeoutNs: timeoutNs}
	l.use(session)
	l.op.Tape = tape
	l.names = make([]string, tape.longest)
	return l
}

// ready prepares a run, and allocates all memory for its results.
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
		l.sections[section] = l.newRecorders()
	}
	l.recorders = &l.sections[0]
	if l.open {
		l.lags = newHistogram()
	} else if !prefill {
		l.groups = newGroups(l.tape.group)
	}
	l.slice = laneSlice{counting: true, nextPartNs: math.MaxInt64}
	l.sentNs, l.endedNs = window.startNs, window.startNs
	l.queued, l.unsent, l.peak, l.played, l.faults = 0, 0, 0, 0, 0
	l.nextReportNs = 0
	l.reportedOk.Store(0)
	l.reportedFailed.Store(0)
	l.alive.Store(window.startNs)
}

// newRecorders are recorders for the kinds that the lane plays.
func (l *lane) newRecorders() (recorders [kindCount]*Recorder) {
	for kind := range kindCount {
		wanted := l.tape.kinds[kind] && !l.prefill || l.prefill && Kind(kind) == Set.kind(false)
		if wanted {
			recorders[kind] = newRecorder(l.open)
		}
	}
	return recorders
}

// free returns the memory for the last run's results.
func (l *lane) free() {
	l.lags.free()
	l.groups.free()
	for _, recorders := range append(l.sections, l.leadIn) {
		for _, recorder := range recorders {
			if recorder != nil {
				recorder.free()
			}
		}
	}
	l.sections, l.leadIn, l.lags = nil, [kindCount]*Recorder{}, nil
	l.groups, l.calls = nil, nil
}

// playSafely plays, and returns a panic as an error; then the other lanes stop.
func (l *lane) playSafely(window *Window, active *atomic.Int64) (err error) {
	defer func() {
		if crash := recover(); crash != nil {
			err = panicked(crash)
			window.stop()
		}
	}()
	l.play(window, active)
	if err = l.renewal.failure(); err != nil {
		window.stop()
	}
	return err
}

// play runs from the window's start to its end. An open loop counts its calls in `active`.
func (l *lane) play(window *Window, active *atomic.Int64) {
	defer l.alive.Store(math.MaxInt64) // the worker must not wait for it any more
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
	if now >= l.slice.nextPartNs && l.plays() {
		l.beginCounting(l.slice.nextPartNs) // it had no CPU until now
	}
	for now < window.endNs.Load() && l.next() {
		now = l.call(0, false)
		l.advance()
		if now >= l.slice.nextPartNs {
			l.endPart(now)
		}
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
		if due >= l.slice.nextPartNs {
			l.beginCounting(due)
		}
		if busy && l.slice.counting {
			l.queued++
		}
		l.peak = max(l.peak, active.Add(1))
		l.call(due, true)
		active.Add(-1)
		l.advance()
	}
}

// call makes the prepared call, and notes its result; returns the instant of its end.
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
		l.noteLag(lag)
	}
	if now >= l.timeline.endNs {
		l.recorders = &l.sections[l.timeline.advance(now)]
	}
	l.recorders[l.op.Kind].note(&l.op, result, now-began, lag)
	if l.calls != nil {
		l.calls.note(&l.op, l.at, result, began, now)
	}
	if l.groups != nil {
		l.groups.note(l.slice.counting && result.Fault == NoFault, began, now)
	}
	l.played++
	if l.renewal != nil && !l.prefill {
		l.renewal.made++
	}
	if result.Fault == NoFault {
		l.timeline.note(lag + now - began)
	} else {
		l.noteFault(result.Fault)
	}
	l.sentNs = now
	if now >= l.nextReportNs {
		l.report(now)
	}
	return now
}

func (l *lane) noteLag(lagNs int64) {
	if l.slice.counting {
		l.lags.put(lagNs)
	}
}

func (l *lane) noteFault(fault Fault) {
	l.faults++
	if fault != FaultWrongValue {
		l.tape.anyGeneration.Store(true) // if it was a write, it may still arrive
	}
}

func (l *lane) report(now int64) {
	l.reportedOk.Store(l.played - l.faults)
	l.reportedFailed.Store(l.faults)
	l.alive.Store(now)
	l.nextReportNs = now + reportEveryNs
}

// noteUnsent notes operations that were due in the window and that will not be sent: they waited at least until now.
func (l *lane) noteUnsent(due int64, window *Window) {
	now := clock()
	end := min(window.endNs.Load(), now)
	for due < end {
		if due >= l.slice.nextPartNs {
			l.beginCounting(due)
		}
		l.recorders[l.op.Kind].response.put(now - due)
		if l.slice.counting {
			l.unsent++
		}
		l.advance()
		if !l.next() {
			return
		}
		due = l.passNs + int64(l.tape.times[l.at])
	}
}

// part is the share of a total for one of `parts` parts; endless without a total.
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
