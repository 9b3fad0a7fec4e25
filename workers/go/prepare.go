// The request `prepare`, in the form that client files take.

package main

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"time"
)

// Prepare is the request `prepare`.
type Prepare struct {
	Tape    *Tape
	Servers []string // `host:port` or a path, as the libraries take them
	Callers int
	Timeout time.Duration
	Options map[string]string
	// ReconnectAfter is the number of calls that a caller makes on its connections; 0: no limit.
	ReconnectAfter int64
}

func newPrepare(request *Request, tape *Tape) *Prepare {
	setup := &Prepare{
		Tape: tape, Callers: request.Threads, Options: request.Options,
		Timeout: time.Duration(request.TimeoutMs) * time.Millisecond,
	}
	setup.ReconnectAfter, _ = strconv.ParseInt(request.Options[reconnectAfter], 10, 64)
	for _, server := range request.Servers {
		setup.Servers = append(setup.Servers, strings.TrimPrefix(server, "unix:"))
	}
	return setup
}

// Common says whether to use the settings that all libraries share.
func (s *Prepare) Common() bool {
	return s.Options["profile"] == "" || s.Options["profile"] == "common"
}

// Tuned says whether to use the settings that the library's documents recommend.
func (s *Prepare) Tuned() bool { return s.Options["profile"] == "tuned" }

// valid refuses numbers and addresses that no worker could use.
func (r *Request) valid() error {
	switch {
	case r.Threads < 1 || r.Connections < 1 || r.Depth < 1:
		return errors.New("threads, connections and depth are at least 1")
	case r.Segment[1] < 1 || r.Segment[0] < 0 || r.Segment[0] >= r.Segment[1]:
		return errors.New("segment is no share of a whole")
	case r.TimeoutMs < 1:
		return errors.New("timeout_ms is at least 1")
	}
	for _, server := range r.Servers {
		if path, unix := strings.CutPrefix(server, "unix:"); unix && strings.Contains(path, "/") {
			continue
		}
		if _, port, err := net.SplitHostPort(server); err != nil || port == "" {
			return errors.New(server + ": an address is host:port or unix:/path")
		}
	}
	return nil
}
