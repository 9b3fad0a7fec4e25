// Slices: lanes that stay ready in their goroutines, and play on for a short time at each request.

package main

import (
	"math"
	"sync"
	"sync/atomic"
)

// laneSlice is a lane's state in the current slice. In a run, everything counts.
type laneSlice struct {
	counting       bool  // the lead-in is over
	nextPartNs     int64 // end of the lead-in, then of the first half of the counted part; MaxInt64: no part follows
	middleNs       int64 // of the counted part
	countedSinceNs int64 // the begin of the counted part
	played, faults int64 // in the lead-in
	halfEndedNs    int64 // the end of the first half; 0: it has not ended
	halfPlayed     int64 // by then, with the lead-in
}

// plays tells whether the lane has operations: a tape may have fewer groups than lanes.
func (l *lane) plays() bool { return l.place*l.tape.group < uint64(len(l.tape.records)) }

// countedSinceNs is the begin of the counted part, whose first completion is now.
func (l *lane) countedSinceNs(now int64) int64 {
	if l.inProcess {
		return l.slice.nextPartNs // its calls wait for a CPU only
	}
	return now
}

// countedNs is the length of its counted part: at least to the slice's end, to include time without a CPU.
// halfNs is the length of the first half: to its last completion; without one, to the middle.
func (l *lane) countedNs(endNs int64) (countedNs, halfNs int64) {
	sinceNs, halfEndNs := l.slice.nextPartNs, min(l.slice.middleNs, endNs)
	if l.slice.counting {
		sinceNs = l.slice.countedSinceNs
	}
	if l.slice.halfEndedNs > 0 {
		halfEndNs = l.slice.halfEndedNs
	}
	if l.played > 0 {
		endNs = max(endNs, l.endedNs)
	}
	return max(0, endNs-sinceNs), max(0, halfEndNs-sinceNs)
}

// beginCounting ends the lead-in.
func (l *lane) beginCounting(sinceNs int64) {
	l.slice = laneSlice{
		counting: true, nextPartNs: l.slice.middleNs, middleNs: l.slice.middleNs,
		countedSinceNs: sinceNs, played: l.played, faults: l.faults,
	}
	l.recorders = &l.sections[0]
}

// endPart ends the lead-in or the first half of the counted part: its last completion is now.
func (l *lane) endPart(now int64) {
	if !l.slice.counting {
		l.beginCounting(l.countedSinceNs(now))
		return
	}
	l.slice.halfEndedNs, l.slice.halfPlayed, l.slice.nextPartNs = now, l.played, math.MaxInt64
}

// readySlices begins at the tape's start, and allocates all memory for the results of slices.
func (l *lane) readySlices(window *Window) {
	l.ready(false, math.MaxInt64, window)
	l.leadIn = l.newRecorders()
}

// beginSlice lets a lane go on at its place on the tape, whose time stood still since the last slice.
func (l *lane) beginSlice(window *Window, leadInNs, pausedNs int64) {
	l.passNs += pausedNs
	l.played, l.faults = 0, 0
	l.recorders = &l.leadIn
	l.groups.cut()
	l.slice = laneSlice{
		nextPartNs: window.startNs + leadInNs, middleNs: window.startNs + (leadInNs+window.durationNs)/2,
	}
	if l.open {
		l.slice.middleNs = math.MaxInt64
	}
	if leadInNs == window.durationNs {
		l.slice.nextPartNs = math.MaxInt64 // nothing counts
	}
	l.alive.Store(window.startNs)
}

// Slices are lanes that wait for their next slice, each in its goroutine.
type Slices struct {
	player   *Player
	turns    []chan *Window // one for each lane; closed at the end
	over     chan struct{}  // the last lane is ready for the next slice
	playing  atomic.Int64
	active   atomic.Int64
	lanes    sync.WaitGroup
	errs     []error
	window   *Window // of the last slice
	leadInNs int64
	totals   totals
	// The numbers of reopened connections before the first slice.
	reconnects, renewed int64
	// The slice's begin.
	userNs, systemNs int64
}

// newSlices starts the goroutines. The first message on `over` says that all of them wait.
func newSlices(player *Player) *Slices {
	count := len(player.lanes)
	s := &Slices{
		player: player, over: make(chan struct{}, 1), errs: make([]error, count),
		window: newWindow(0, 0, player.setup.Timeout),
	}
	s.reconnects, s.renewed = player.connections()
	s.window.last(0)
	s.playing.Store(int64(count))
	for t, l := range player.lanes {
		l.readySlices(s.window)
		s.turns = append(s.turns, make(chan *Window, 1))
		s.lanes.Add(1)
		go s.playLane(t, l)
	}
	return s
}

func (s *Slices) playLane(t int, l *lane) {
	defer s.lanes.Done()
	for {
		l.alive.Store(math.MaxInt64)
		if s.playing.Add(-1) == 0 {
			s.over <- struct{}{}
		}
		window, more := <-s.turns[t]
		if !more {
			return
		}
		s.errs[t] = l.playSafely(window, &s.active)
	}
}

// begin lets the lanes play a slice; a message on `over` says that it has ended.
func (s *Slices) begin(window *Window, leadInNs int64) {
	s.userNs, s.systemNs = cpuNs()
	pausedNs := window.startNs - max(s.window.startNs, s.window.endNs.Load())
	s.window, s.leadInNs = window, leadInNs
	s.playing.Store(int64(len(s.turns)))
	for _, l := range s.player.lanes {
		l.beginSlice(window, leadInNs, pausedNs)
	}
	for _, turn := range s.turns {
		turn <- window
	}
}

// result returns the result of the ended slice, and adds it to the totals.
func (s *Slices) result() (*SliceDone, error) {
	for _, err := range s.errs {
		if err != nil {
			return nil, err
		}
	}
	done := &SliceDone{Type: "slice_done"}
	for _, l := range s.player.lanes {
		lead := l.slice
		if !lead.counting {
			lead.played, lead.faults = l.played, l.faults
		}
		done.LeadInOps += lead.played
		done.Errors += l.faults - lead.faults
		done.Ops += l.played - lead.played - (l.faults - lead.faults)
		if lead.halfEndedNs == 0 {
			lead.halfPlayed = l.played
		}
		done.HalfOps += lead.halfPlayed - lead.played
	}
	if s.player.lanes[0].open {
		done.ElapsedNs, done.HalfOps = max(0, s.window.endNs.Load()-s.window.startNs-s.leadInNs), 0
	} else {
		done.ElapsedNs, done.HalfNs = s.countedNs()
	}
	userNs, systemNs := cpuNs()
	s.totals.elapsedNs += done.ElapsedNs
	s.totals.sendElapsedNs = s.totals.elapsedNs
	s.totals.userNs += userNs - s.userNs
	s.totals.systemNs += systemNs - s.systemNs
	return done, nil
}

// countedNs is the length of the counted part, and of its first half: the means over the lanes with operations.
func (s *Slices) countedNs() (countedNs, halfNs int64) {
	callers, played := int64(0), int64(0)
	for _, l := range s.player.lanes {
		if l.played > 0 {
			played++
		}
		if l.plays() {
			callers++
			laneNs, laneHalfNs := l.countedNs(s.window.endNs.Load())
			countedNs, halfNs = countedNs+laneNs, halfNs+laneHalfNs
		}
	}
	s.totals.atOnce = max(s.totals.atOnce, played)
	return countedNs / max(callers, 1), halfNs / max(callers, 1)
}

// end ends the goroutines, and returns the sum of the slices.
func (s *Slices) end() {
	for _, turn := range s.turns {
		close(turn)
	}
	s.lanes.Wait()
}

func (s *Slices) done() (*Done, error) {
	s.totals.count(s.player, s.reconnects, s.renewed)
	done, err := s.player.done("measure", s.totals)
	if err != nil {
		return nil, err
	}
	done.LeadIn, err = leadIn(s.player.lanes)
	return done, err
}
