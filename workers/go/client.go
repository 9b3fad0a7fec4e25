// What a client file has to offer, and the list of them.

package main

import (
	"fmt"
	"slices"
	"strings"
)

// Client is a library as this worker drives it.
type Client struct {
	Library    string // its Go module
	Wires      []string
	Features   []string
	Options    map[string][]string // and the values that each may have, its default first
	New        func() Session
	PlainTapes string // why it plays only tapes with one expiry time; empty if it plays all
}

// Session is the library set up for one trial.
type Session interface {
	// Open connects; its error names the address. It must not last longer than a few time-outs.
	Open(setup *Setup) error
	// Lane is one caller's use of it; also asked for before Open, to learn the kinds.
	Lane() Lane
	// Settle waits at the end of a lane's run until what was asked for is done; false if the calls
	// themselves have done it.
	Settle() bool
	// Reconnects counts the connections that were opened after Open.
	Reconnects() int64
	// Close ends the connections and lets go of every key and value of the tape.
	Close()
}

// Lane is a table of the kinds that a library can do.
type Lane map[Kind]Steps

// Steps are the library's call, which is timed, and what its answer comes to, which is not. The
// answer stays in variables of the lane between the two.
type Steps struct {
	Call  func(op *Op)
	Judge func(op *Op) Result
}

// Op is one operation, made ready before its call. It is the lane's and used again for the next.
type Op struct {
	Tape     *Tape
	Kind     Kind
	Prefill  bool // stored before anything is timed
	Record   *Record
	Key      string
	Value    []byte   // what is written
	Keys     []string // of a batch
	ExptimeS uint32
	Amount   uint64
}

// index is which key stands in place i.
func (op *Op) index(i int) uint32 { return op.Tape.index(op.Record, i) }

// unsupported is what a client cannot do; its text is the answer's reason.
type unsupported struct{ reason, remedy string }

func (u *unsupported) Error() string { return u.reason }

func cannot(format string, words ...any) error {
	return &unsupported{reason: fmt.Sprintf(format, words...)}
}

var clients = map[string]*Client{
	"gomemcache":         gomemcache,
	"gomemcache-grafana": gomemcacheGrafana,
	"null":               null,
	"otter":              otterCache,
	"ristretto":          ristrettoCache,
}

func (c *Client) inProcess() bool { return c.Wires[0] == "none" }

func (c *Client) capabilities() []string {
	lane := c.New().Lane()
	listed := slices.Concat(c.Wires, c.Features, []string{"course"})
	for kind := range Kind(kindCount) {
		if _, can := lane[kind]; can {
			listed = append(listed, kind.String())
		}
	}
	return listed
}

// refuse says what a client cannot do, before anything is timed.
func (c *Client) refuse(request *Request, tape *Tape) error {
	lane := c.New().Lane()
	for kind := range Kind(kindCount) {
		if _, can := lane[kind]; tape.kinds[kind] && !can {
			return cannot("%s: no %s", c.Library, kind)
		}
	}
	for name, value := range request.Options {
		allowed, known := c.Options[name]
		if !known || !slices.Contains(allowed, value) {
			return cannot("%s: no option %s=%s; it has %s", c.Library, name, value, c.optionList())
		}
	}
	if c.PlainTapes != "" && len(tape.exptimes) > 1 {
		return cannot("%s: %s", c.Library, c.PlainTapes)
	}
	switch servers := len(request.Servers); {
	case tape.thinks:
		return cannot("%s: no time to think between operations", c.Library)
	case !slices.Contains(c.Wires, request.Wire):
		return cannot("%s: no wire %q, only %q", c.Library, request.Wire, c.Wires)
	case request.Depth != 1:
		return cannot("%s: one operation at a time of each caller (depth 1)", c.Library)
	case c.inProcess() && servers > 0:
		return cannot("%s: it lives in the worker's own process and has no server", c.Library)
	case !c.inProcess() && servers == 0:
		return cannot("%s: it needs a server", c.Library)
	case !c.inProcess() && request.Connections != request.Threads:
		return cannot("%s: its pool has one connection for each caller", c.Library)
	}
	return nil
}

func (c *Client) optionList() string {
	var listed []string
	for name, values := range c.Options {
		listed = append(listed, name+"="+strings.Join(values, "|"))
	}
	if len(listed) == 0 {
		return "none"
	}
	slices.Sort(listed)
	return strings.Join(listed, ", ")
}
