// One prepared trial: the library with its connections open, and the lanes that use it.

package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// A call that outlasts every time-out by this much will never return.
const lostNs = 5_000_000_000

// Player is a client that is ready to play.
type Player struct {
	tape     *Tape
	sessions []Session // one for all lanes, or one for each
	setup    *Prepare
	lanes    []*lane
	slices   *Slices // nil outside of begin_slices and end_slices
}

func newPlayer(client *Client, setup *Prepare, segment [2]int) (*Player, error) {
	sessions, err := openSessions(client, setup)
	if err != nil {
		closeAll(sessions)
		return nil, err
	}
	player := &Player{tape: setup.Tape, sessions: sessions, setup: setup}
	if len(setup.Servers) == 0 || !setup.Common() || setup.Tape.lanes != uint64(segment[1]*setup.Callers) {
		setup.Tape.anyGeneration.Store(true) // operations may overtake each other, or the generations are for other lanes
	}
	timeoutNs := int64(setup.Timeout)
	if client.inProcess() {
		timeoutNs = math.MaxInt64 // without a server, no call is late
	}
	for t := range setup.Callers {
		place, lanes := segment[0]*setup.Callers+t, segment[1]*setup.Callers
		session := &sessions[t%len(sessions)]
		l := newLane(setup.Tape, place, lanes, *session, timeoutNs)
		l.inProcess = client.inProcess()
		l.renewal = newRenewal(client, setup, session)
		player.lanes = append(player.lanes, l)
	}
	return player, nil
}

func (p *Player) close() {
	p.endSlices()
	for _, l := range p.lanes {
		l.free()
	}
	closeAll(p.sessions)
	p.tape.close()
}

func closeAll(sessions []Session) {
	for _, session := range sessions {
		session.Close()
	}
}

// progress returns the numbers of operations that succeeded and failed so far.
func (p *Player) progress() (ops, errors int64) {
	for _, l := range p.lanes {
		ops += l.reportedOk.Load()
		errors += l.reportedFailed.Load()
	}
	return ops, errors
}

// hangs tells whether a lane is in a call that will never return.
func (p *Player) hangs() bool {
	for _, l := range p.lanes {
		if clock()-l.alive.Load() > 2*int64(p.setup.Timeout)+lostNs+reportEveryNs {
			return true
		}
	}
	return false
}

// beginSlices makes slices ready, from the tape's start on.
func (p *Player) beginSlices() *Slices {
	p.endSlices()
	for _, l := range p.lanes {
		l.givesUp, l.steps = nil, l.own
	}
	p.slices = newSlices(p)
	runtime.GC()
	return p.slices
}

// endSlices ends the slices, if any; their lanes keep the results until the next run.
func (p *Player) endSlices() {
	if p.slices != nil {
		p.slices.end()
		p.slices = nil
	}
}

// begin prepares a run, so that nothing is left to do at the window's start.
func (p *Player) begin(request *Request, window *Window) {
	p.endSlices()
	prefill := request.Phase == "prefill"
	p.tape.begins(prefill)
	limit := request.Ops
	if prefill {
		limit = nil
	}
	for t, l := range p.lanes {
		l.ready(prefill, part(limit, t, len(p.lanes)), window)
		l.givesUp, l.givenUp = request.GivesUp, 0
		l.arm(p.sessions[t%len(p.sessions)])
		if request.Calls != "" {
			l.calls = newCallLog(len(p.lanes))
		}
	}
	runtime.GC() // the run must not collect earlier garbage
}

// play runs a phase; blocks until its end.
func (p *Player) play(request *Request, window *Window) (*Done, error) {
	var active atomic.Int64
	reconnects, renewed := p.connections()
	var heap Heap
	if request.Heap {
		heap = heapNow()
	}
	beforeUserNs, beforeSystemNs := cpuNs()
	errs := make([]error, len(p.lanes))
	var group sync.WaitGroup
	for t, l := range p.lanes {
		group.Add(1)
		go func() {
			defer group.Done()
			errs[t] = l.playSafely(window, &active)
		}()
	}
	group.Wait()
	userNs, systemNs := cpuNs()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	totals := p.totals(window)
	totals.count(p, reconnects, renewed)
	totals.userNs, totals.systemNs = userNs-beforeUserNs, systemNs-beforeSystemNs
	if request.Heap {
		totals.heap = heapNow().since(heap)
	}
	return p.done(request.Phase, totals)
}

// internalError is a mistake in this worker's own code, such as a client file.
type internalError struct{ text string }

func (e *internalError) Error() string { return e.text }

// panicked returns a recovered panic as an error: internal if this program's own code panicked, and
// not the library. The stack goes to stderr.
func panicked(crash any) error {
	fmt.Fprintf(os.Stderr, "panic: %v\n%s", crash, debug.Stack())
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(0, callers)])
	begun := false
	for frame, more := frames.Next(); more; frame, more = frames.Next() {
		if !strings.HasPrefix(frame.Function, "runtime.") && begun {
			if strings.HasPrefix(frame.Function, "main.") {
				place := fmt.Sprintf("%s:%d", filepath.Base(frame.File), frame.Line)
				return &internalError{fmt.Sprintf("panic: %v (%s)", crash, place)}
			}
			break
		}
		begun = begun || frame.Function == "runtime.gopanic"
	}
	return fmt.Errorf("a call of the library panicked: %v", crash)
}

// totals are the times and counts of a run, or of all slices together.
type totals struct {
	elapsedNs, sendElapsedNs int64
	userNs, systemNs         int64
	reconnects, renewed      int64
	atOnce                   int64 // lanes of a closed loop that played: each is always in a call
	heap                     *Heap // of a run that asked for it
}

// count adds the connections that were reopened beyond these numbers.
func (t *totals) count(p *Player, reconnects, renewed int64) {
	t.reconnects, t.renewed = p.connections()
	t.reconnects -= reconnects
	t.renewed -= renewed
}

// totals of a run that has ended, without the figures of the kernel and the library.
func (p *Player) totals(window *Window) (sum totals) {
	for _, l := range p.lanes {
		sum.elapsedNs = max(sum.elapsedNs, l.endedNs-window.startNs)
		sum.sendElapsedNs = max(sum.sendElapsedNs, l.sentNs-window.startNs)
		if l.played > 0 && !l.open {
			sum.atOnce++
		}
	}
	return sum
}

func (p *Player) done(phase string, sum totals) (*Done, error) {
	done := &Done{
		Type: "done", Phase: phase, ElapsedNs: sum.elapsedNs, SendElapsedNs: sum.sendElapsedNs,
		CPUUserNs: sum.userNs, CPUSystemNs: sum.systemNs, Reconnects: sum.reconnects, Renewed: sum.renewed,
		MaxInFlight: sum.atOnce, WrongReplies: wrongReplies(p.lanes), Heap: sum.heap,
	}
	var lags *Histogram
	for _, l := range p.lanes {
		done.MaxInFlight = max(done.MaxInFlight, l.peak)
		done.Queued += l.queued
		done.Unsent += l.unsent
		if l.lags != nil && lags == nil {
			lags = newHistogram()
		}
		if l.lags != nil {
			lags.add(l.lags)
		}
	}
	var err error
	defer lags.free()
	if done.SendLag, err = lags.encode(); err != nil {
		return nil, err
	}
	if done.Timeline, done.Sections, err = timelineOf(p.lanes); err != nil {
		return nil, err
	}
	if done.Groups, err = groupsOf(p.lanes); err != nil {
		return nil, err
	}
	done.Operations, err = operations(p.lanes, lags != nil)
	return done, err
}

// cpuNs is the CPU time of this process so far, in its own code and in the kernel.
func cpuNs() (user, system int64) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, 0
	}
	return usage.Utime.Nano(), usage.Stime.Nano()
}
