// The worker for memcached clients and in-process caches in Go: `worker CLIENT`.
//
//	worker.go    requests in, answers out    lane.go       the measured loops
//	messages.go  what they look like         window.go     when a run begins and ends
//	prepare.go   what `prepare` asks for     verify.go     what a reply comes to
//	player.go    one prepared trial          recorder.go   what is recorded, and its sums
//	tape.go      the tape, checked           histogram.go  HdrHistogram
//	kinds.go     the kinds of operation      timeline.go   the window in slices and sections
//	client.go    what a client file offers   connect.go    how clients connect
//	*_client.go  one file for each library   README.md     what a client file has to hold
//
// The garbage collector runs with its defaults (GOGC=100, GOMAXPROCS = all CPUs), or as the
// environment says: `hello` tells which. The loops allocate nothing, so what it has to collect is
// the library's; see tape.go for why the tape is not on its heap.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const progressEvery = time.Second

// Worker answers requests one after the other; a run goes on in goroutines of its own meanwhile.
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
	os.Exit(0) // without waiting for a call of the library that may not come back
}

// ownStdout keeps stdout for the protocol, whatever a library prints.
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
		os.Exit(0) // nobody is left to tell, and a call of the library may not come back
	}
	close(inbox)
}

// current is the window of the run that is going on, after setting it where `set`.
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

func (w *Worker) hello() any {
	return &Ready{
		Type: "ready", Protocol: 2, Client: "go/" + w.name, Library: w.client.Library,
		LibraryVersion: moduleVersion(w.client.Library), Language: "go", Runtime: runtimeText(),
		Capabilities: w.client.capabilities(),
	}
}

// moduleVersion is what the linker wrote into this binary of a module.
func moduleVersion(path string) string {
	info, known := debug.ReadBuildInfo()
	if !known {
		return ""
	}
	for _, module := range info.Deps {
		if module.Path == path {
			return module.Version
		}
	}
	return ""
}

func runtimeText() string {
	percent := debug.SetGCPercent(100)
	debug.SetGCPercent(percent)
	collector := fmt.Sprintf("GOGC=%d", percent)
	if percent < 0 {
		collector = "GOGC=off"
	}
	return fmt.Sprintf("%s, %s, GOMAXPROCS=%d", runtime.Version(), collector, runtime.GOMAXPROCS(0))
}

// prepare reads the tape, refuses what cannot be done, connects.
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

// answerTo is the answer that an error is, of a kind where its type does not say more.
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

// run plays a phase, and tells progress each second.
func (w *Worker) run(request *Request) any {
	if w.player == nil {
		return failure("protocol", "run before prepare")
	}
	player := w.player
	window := newWindow(request.StartUnixNs, request.DurationMs, player.setup.Timeout)
	w.current(window, true)
	defer w.current(nil, true)
	player.begin(request, window)
	ended := make(chan any, 1)
	go func() {
		done, err := player.play(request, window)
		if err != nil {
			var own *internalError
			if errors.As(err, &own) {
				ended <- failure("internal", err.Error())
				return
			}
			ended <- failure("client", err.Error())
			return
		}
		ended <- done
	}()
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case answer := <-ended:
			return answer
		case <-ticker.C:
			ops, faults := player.progress()
			w.send(&Progress{Type: "progress", Ops: ops, Errors: faults})
			if player.hangs() {
				w.player = nil // with its tape: a lane still has it in its hands
				lost := failure("client", "a call of the library does not return")
				lost.Definite = false
				return lost
			}
		}
	}
}
