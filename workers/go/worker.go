// The worker for memcached clients and in-process caches in Go: `worker CLIENT`.
//
//	worker.go    requests in, answers out    lane.go       the measured loops
//	messages.go  what they look like         window.go     when a run begins and ends
//	prepare.go   the request `prepare`     verify.go     the result of a reply
//	player.go    one prepared trial          recorder.go   the records, and their sums
//	tape.go      the tape, checked           histogram.go  HdrHistogram
//	kinds.go     the kinds of operation      timeline.go   the window in slices and sections
//	client.go    what a client file offers   connect.go    how clients connect
//	slices.go    short turns of a player     script.go    what a lane plays next
//	groups.go    the times of whole groups   heap.go, sampler.go  what a run allocates; samples of it
//	hello.go     who this worker is          renewal.go    connections that are opened again as asked
//	*_client.go  one file for each library   README.md     what a client file must contain
//
// The garbage collector runs with its defaults (GOGC=100, GOMAXPROCS = all CPUs), or as the
// environment says: the answer to `hello` names both. The loops allocate nothing, so all garbage is
// the library's; tape.go says why the tape is not on the heap.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const progressEvery = time.Second

// Worker answers requests one after the other, while a run plays in its own goroutines.
type Worker struct {
	name   string
	client *Client
	player *Player
	out    io.Writer

	sending sync.Mutex
	running sync.Mutex // guards window
	window  *Window
}

func main() {
	names := []string{}
	for name := range clients {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(os.Args) != 2 || clients[os.Args[1]] == nil {
		fmt.Fprintf(os.Stderr, "worker CLIENT: one of %s\n", strings.Join(names, ", "))
		os.Exit(2)
	}
	out, err := ownStdout()
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
	worker := &Worker{name: os.Args[1], client: clients[os.Args[1]], out: out}
	worker.serve()
	os.Exit(0) // without waiting for a call of the library, which may never return
}

// ownStdout keeps stdout for the protocol, even if a library prints.
func ownStdout() (*os.File, error) {
	fd, err := syscall.Dup(1)
	if err != nil {
		return nil, err
	}
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), "stdout"), syscall.Dup3(2, 1, 0)
}

// serve answers until `bye` or the end of stdin.
func (w *Worker) serve() {
	inbox := make(chan *Request, 16)
	go w.listen(inbox)
	for request := range inbox {
		switch request.Type {
		case "hello":
			w.send(w.hello())
		case "prepare":
			w.send(w.prepare(request))
		case "run":
			w.send(w.run(request))
		case "begin_slices":
			w.send(w.beginSlices())
		case "slice":
			w.send(w.slice(request))
		case "end_slices":
			w.send(w.endSlices())
		case "bye":
			return
		}
	}
}

func (w *Worker) listen(inbox chan<- *Request) {
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		request, err := parse(line)
		if err != nil || request.Type == "" {
			w.send(failure("protocol", fmt.Sprintf("not a request: %.120q", strings.TrimSpace(string(line)))))
			continue
		}
		if request.Type == "stop" || request.Type == "bye" {
			if window := w.current(nil, false); window != nil {
				window.stop()
			}
		}
		inbox <- request
	}
	if w.current(nil, false) != nil {
		os.Exit(0) // the orchestrator is gone, and a call of the library may never return
	}
	close(inbox)
}

// current is the window of the current run; with `set`, it is set first.
func (w *Worker) current(window *Window, set bool) *Window {
	w.running.Lock()
	defer w.running.Unlock()
	if set {
		w.window = window
	}
	return w.window
}

func (w *Worker) send(message any) {
	line, err := json.Marshal(message)
	if err != nil {
		line, _ = json.Marshal(failure("internal", err.Error()))
	}
	w.sending.Lock()
	defer w.sending.Unlock()
	_, _ = w.out.Write(append(line, '\n'))
}

// prepare reads the tape, refuses what the client cannot do, and connects.
func (w *Worker) prepare(request *Request) any {
	if w.player != nil {
		w.player.close()
		w.player = nil
	}
	if err := request.valid(); err != nil {
		return failure("protocol", err.Error())
	}
	tape, err := readTape(request.Tape)
	if err != nil {
		return answerTo(err, "tape")
	}
	if err := w.client.refuse(request, tape); err != nil {
		tape.close()
		return answerTo(err, "client")
	}
	w.player, err = newPlayer(w.client, newPrepare(request, tape), request.Segment)
	if err != nil {
		tape.close()
		return answerTo(err, "connect")
	}
	return &Ready{Type: "ready", Protocol: 2}
}

// answerTo turns an error into an answer, of the given kind unless its type has its own.
func answerTo(err error, kind string) any {
	var refusal *unsupported
	var file *fs.PathError
	switch {
	case errors.As(err, &refusal):
		return &Unsupported{Type: "unsupported", Reason: refusal.reason, Remedy: refusal.remedy}
	case errors.As(err, &file):
		return failure("tape", err.Error())
	}
	return failure(kind, err.Error())
}

// run plays a phase, and reports progress each second.
func (w *Worker) run(request *Request) any {
	if w.player == nil {
		return failure("protocol", "run before prepare")
	}
	player := w.player
	window := newWindow(request.StartUnixNs, startAheadNs, player.setup.Timeout)
	if request.DurationMs != nil {
		window.last(*request.DurationMs * 1_000_000)
	}
	w.current(window, true)
	defer w.current(nil, true)
	player.begin(request, window)
	var done *Done
	var err error
	over := make(chan struct{}, 1)
	go func() {
		done, err = sampled(request, func() (*Done, error) { return player.play(request, window) })
		over <- struct{}{}
	}()
	lost := w.wait(player, over, true)
	if request.Calls != "" {
		if failed := writeCallLog(request.Calls, player.lanes); failed != nil {
			return failure("internal", failed.Error())
		}
	}
	if lost != nil {
		return lost
	}
	return doneOr(done, err)
}

func doneOr[Answer any](done *Answer, err error) any {
	var own *internalError
	switch {
	case errors.As(err, &own):
		return failure("internal", err.Error())
	case err != nil:
		return failure("client", err.Error())
	}
	return done
}

// wait waits for the lanes; returns a failure if one of them never returns.
func (w *Worker) wait(player *Player, over <-chan struct{}, tells bool) any {
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case <-over:
			return nil
		case <-ticker.C:
			if tells {
				ops, faults := player.progress()
				w.send(&Progress{Type: "progress", Ops: ops, Errors: faults})
			}
			if player.hangs() {
				w.player = nil // keep its tape: a lane still uses it
				lost := failure("client", "a call of the library does not return")
				lost.Definite = false
				return lost
			}
		}
	}
}

func (w *Worker) beginSlices() any {
	if w.player == nil {
		return failure("protocol", "begin_slices before prepare")
	}
	<-w.player.beginSlices().over
	return &Ready{Type: "ready", Protocol: 2}
}

// slice lets the lanes play on for a short time.
func (w *Worker) slice(request *Request) any {
	if w.player == nil || w.player.slices == nil {
		return failure("protocol", "slice without begin_slices")
	}
	if request.LeadInUs < 0 || request.LeadInUs > request.LengthUs {
		return failure("protocol", "a slice whose lead-in is not a part of it")
	}
	player, slices := w.player, w.player.slices
	window := newWindow(request.StartUnixNs, 0, player.setup.Timeout)
	window.last(request.LengthUs * 1_000)
	w.current(window, true)
	defer w.current(nil, true)
	slices.begin(window, request.LeadInUs*1_000)
	if lost := w.wait(player, slices.over, false); lost != nil {
		return lost
	}
	done, err := slices.result()
	if err != nil {
		player.endSlices() // its lanes cannot play on
	}
	return doneOr(done, err)
}

func (w *Worker) endSlices() any {
	if w.player == nil || w.player.slices == nil {
		return failure("protocol", "end_slices without begin_slices")
	}
	slices := w.player.slices
	w.player.endSlices()
	return doneOr(slices.done())
}
