// A window: the begin and the end of a run, and waiting for an instant in it.

package main

import (
	"math"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const (
	// On an idle machine Go's timers are up to a millisecond late, and a sleep in the kernel some
	// 0.1 ms. So the last part of a wait polls the clock.
	spinNs = 150_000
	// A wait checks at this interval whether the run was stopped.
	lookNs = 20_000_000
	// The time that lanes need to be ready before a window begins.
	startAheadNs = 5_000_000
)

var epoch = time.Now()

// clock is monotonic, in ns; one reading of the kernel's clock, without a system call.
func clock() int64 { return int64(time.Since(epoch)) }

// Window is shared by the lanes of a run. Its end moves to now when the run is stopped.
type Window struct {
	startNs    int64
	durationNs int64 // 0 if it ends by a number of operations
	timeoutNs  int64
	endNs      atomic.Int64
	stopped    atomic.Bool
}

// newWindow begins at an instant of the wall clock, but not before a minimal time from now, and has no end.
func newWindow(startUnixNs, aheadNs int64, timeout time.Duration) *Window {
	ahead := max(aheadNs, startUnixNs-time.Now().UnixNano())
	window := &Window{startNs: clock() + ahead, timeoutNs: int64(timeout)}
	window.endNs.Store(math.MaxInt64)
	return window
}

// last sets the window's length.
func (w *Window) last(ns int64) {
	w.durationNs = ns
	w.endNs.Store(w.startNs + ns)
}

func (w *Window) stop() {
	w.stopped.Store(true)
	w.endNs.Store(min(w.endNs.Load(), clock()))
}

// drainNs is the instant after which an open loop sends no operations that were due in its window.
func (w *Window) drainNs() int64 {
	end := w.endNs.Load()
	if w.stopped.Load() || end == math.MaxInt64 {
		return end
	}
	return end + 2*w.timeoutNs
}

// waitUntil waits for an instant, and returns the time then; false if the run was stopped.
func (w *Window) waitUntil(instantNs int64, alive *atomic.Int64) (int64, bool) {
	for {
		now := clock()
		left := instantNs - now
		if left <= 0 {
			return now, true
		}
		if w.stopped.Load() {
			return now, false
		}
		if left <= spinNs {
			runtime.Gosched() // another lane may have a reply
			continue
		}
		alive.Store(now)
		kernelSleep(min(left-spinNs, lookNs))
	}
}

func kernelSleep(ns int64) {
	span := syscall.NsecToTimespec(ns)
	_, _, _ = syscall.Syscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&span)), 0, 0)
}
