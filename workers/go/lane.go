// A lane: one goroutine that plays its records of the tape, and notes their results.

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
	own       [kindCount]Handler // its use of the library
	steps     [kindCount]Handler // these, or others that give up calls
	flush     func() bool
	renewal   *renewal // nil: its connections stay
	givesUp   *GiveUp  // nil: it gives up no calls
	givenUp   int64    // calls that could have been given up
	timeoutNs int64    // a call that lasts so long is a timeout
	inProcess bool     // its client has no server

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
	leadIn                     [kindCount]*Recorder   // what slices do not count
	recorders                  *[kindCount]*Recorder  // of the section that is going on, or of the lead-in
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
	reportedOk, reportedFailed atomic.Int64 // of other goroutines to read
	alive                      atomic.Int64 // when it was last seen between two calls
}

func newLane(tape *Tape, place, lanes int, session Session, timeoutNs int64) *lane {
	l := &lane{tape: tape, place: uint64(place), lanes: uint64(lanes), timeoutNs: timeoutNs}
	l.use(session)
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

// free gives back what the last run was noted into.
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

// playSafely plays, and gives the error that a panic is; the other lanes stop then.
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
	defer l.alive.Store(math.MaxInt64) // no lane waits for it any more
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
		l.tape.anyGeneration.Store(true) // if it is a write, it may still come
	}
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

// part is the share of a total that one of `parts` parts has; without a total it is endless.
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
