// The interface of a client file, and the registry of clients.

package main

import (
	"fmt"
	"slices"
	"strings"
)

// Client is a library as this worker drives it. README.md says what each part must do.
type Client struct {
	Library  string // its Go module; `none` if there is no library
	Wires    []string
	Features []string
	Options  map[string][]string // the possible values of each, its default first
	New      func() Session
	// Refuse says why the client cannot play a tape; empty if it can. May be nil.
	Refuse func(tape *Tape) string
}

// Session is the library set up for one trial. BaseSession has defaults for the last three methods.
type Session interface {
	// Open connects; its error names the address. It must not last longer than a few time-outs.
	Open(setup *Prepare) error
	// Handlers are one caller's use of the library, by kind. The worker asks for them once on a
	// session that is never opened, to learn the kinds, and once for each caller after Open.
	Handlers() Handlers
	// Flush waits, at the end of a lane's run, for operations in the library's queue. It returns
	// false if there is nothing to wait for.
	Flush() bool
	// Reconnects counts the connections that were opened after Open.
	Reconnects() int64
	// Close ends the connections and releases every key and value of the tape.
	Close()
}

// BaseSession has defaults; sessions embed it.
type BaseSession struct{}

// Flush has nothing to wait for.
func (BaseSession) Flush() bool { return false }

// Reconnects counts none.
func (BaseSession) Reconnects() int64 { return 0 }

// Close has nothing to end.
func (BaseSession) Close() {}

// Handlers are the kinds that a library supports, with the handler of each.
type Handlers map[Kind]Handler

// Handler does one kind of operation. Call is the library's call and is timed; Verify judges its
// reply and is not timed. The reply stays in variables of the caller between the two.
type Handler struct {
	Call   func(op *Op)
	Verify func(op *Op) Result
}

// Op is one operation, prepared before its call. The lane reuses it for the next one.
type Op struct {
	Tape     *Tape
	Kind     Kind
	Prefill  bool // part of the prefill
	Record   *Record
	Key      string
	Value    []byte   // the value to write
	Keys     []string // the keys of a batch
	ExptimeS uint32
	Amount   uint64
	Wrong    []byte // the value that was read, if it is wrong
}

// index is the number of the key in place i.
func (op *Op) index(i int) uint32 { return op.Tape.index(op.Record, i) }

// told is the generation in the record for a key; for an mget, only the first key has one.
func (op *Op) told(i int) uint8 {
	if i > 0 {
		return 0
	}
	return op.Record.generation()
}

// unsupported is an error for something that a client cannot do; its text is the answer's reason.
type unsupported struct{ reason, remedy string }

func (u *unsupported) Error() string { return u.reason }

func cannot(format string, words ...any) error {
	return &unsupported{reason: fmt.Sprintf(format, words...)}
}

var clients = map[string]*Client{}

// register adds a client to the registry. Each client file calls it in `init`.
func register(name string, client *Client) { clients[name] = client }

func (c *Client) inProcess() bool { return c.Wires[0] == "none" }

func (c *Client) capabilities() []string {
	session := c.New()
	handlers := session.Handlers()
	listed := slices.Concat(c.Wires, c.Features, []string{"slices", "timeline", "groups", "calls"})
	if _, can := session.(Cancelling); can {
		listed = append(listed, "cancel")
	}
	for kind := range Kind(kindCount) {
		if _, can := handlers[kind]; can {
			listed = append(listed, kind.String())
		}
	}
	return listed
}

// refuse returns an error for something that a client cannot do, before the prefill.
func (c *Client) refuse(request *Request, tape *Tape) error {
	handlers := c.New().Handlers()
	for kind := range Kind(kindCount) {
		if _, can := handlers[kind]; tape.kinds[kind] && !can {
			return cannot("%s: no %s", c.Library, kind)
		}
	}
	encrypts := slices.Contains(c.Features, "tls")
	if _, err := readTLS(request.Options); encrypts && err != nil {
		return cannot("%s: option tls: %s", c.Library, err)
	}
	for name, value := range request.Options {
		if reason := c.refuseOption(name, value, encrypts); reason != "" {
			return cannot("%s: %s", c.Library, reason)
		}
	}
	if c.Refuse != nil {
		if reason := c.Refuse(tape); reason != "" {
			return cannot("%s: %s", c.Library, reason)
		}
	}
	if tape.thinks {
		return cannot("%s: no time to think between operations", c.Library)
	}
	return c.refuseServers(request)
}

// refuseOption says why an option is wrong; empty if it is right.
func (c *Client) refuseOption(name, value string, encrypts bool) string {
	if encrypts && slices.Contains(tlsOptions, name) {
		return ""
	}
	if name == reconnectAfter {
		return c.refuseRenewal(value)
	}
	allowed, known := c.Options[name]
	if !known || !slices.Contains(allowed, value) {
		return fmt.Sprintf("no option %s=%s; it has %s", name, value, c.optionList())
	}
	return ""
}

func (c *Client) refuseServers(request *Request) error {
	switch servers := len(request.Servers); {
	case !slices.Contains(c.Wires, request.Wire):
		return cannot("%s: no wire %q, only %q", c.Library, request.Wire, c.Wires)
	case request.Depth != 1:
		return cannot("%s: one operation at a time of each caller (depth 1)", c.Library)
	case c.inProcess() && servers > 0:
		return cannot("%s: it lives in the worker's own process and has no server", c.Library)
	case c.inProcess():
		return nil
	case servers == 0:
		return cannot("%s: it needs a server", c.Library)
	case servers > 1 && !slices.Contains(c.Features, "cluster"):
		return cannot("%s: one server only", c.Library)
	case hasUnix(request.Servers) && !slices.Contains(c.Features, "unix"):
		return cannot("%s: no Unix sockets", c.Library)
	case request.Connections != request.Threads:
		return cannot("%s: its pool has one connection for each caller", c.Library)
	}
	return nil
}

func hasUnix(servers []string) bool {
	return slices.ContainsFunc(servers, func(server string) bool { return strings.HasPrefix(server, "unix:") })
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
