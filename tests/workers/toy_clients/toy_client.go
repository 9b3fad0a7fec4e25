// toy: a socket and no library. The text protocol, `get` and `set`.

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

func init() {
	register("toy", &Client{
		Library:  "none",
		Wires:    []string{"text"},
		Features: []string{"threads", "open_loop"},
		New:      func() Session { return &toySession{} },
	})
}

type toySession struct {
	BaseSession
	connector *connector
	callers   []*callerConn
	used      int
}

func (s *toySession) Open(setup *Prepare) error {
	s.connector = newConnector(setup)
	for range setup.Callers {
		caller, err := s.connector.connectCaller(setup.Servers[0])
		if err != nil {
			return err
		}
		s.callers = append(s.callers, caller)
	}
	return nil
}

func (s *toySession) Reconnects() int64 { return s.connector.later.Load() }

func (s *toySession) Close() {
	for _, caller := range s.callers {
		caller.hangUp()
	}
}

// toyCaller is one caller; it has the answer of its last call.
type toyCaller struct {
	*callerConn
	replies *bufio.Reader
	value   []byte
	there   bool
	err     error
}

func (s *toySession) Handlers() Handlers {
	c := &toyCaller{}
	if s.used < len(s.callers) { // none before Open, where only the kinds are asked for
		c.callerConn = s.callers[s.used]
		s.used++
	}
	return Handlers{
		Get.kind(false): {c.get, c.verifyGet},
		Set.kind(false): {c.set, c.verifySet},
	}
}

// ask sends a request and gives the first line of its reply.
func (c *toyCaller) ask(request []byte) string {
	before := c.conn
	conn, err := c.ready()
	if err == nil {
		if conn != before || c.replies == nil {
			c.replies = bufio.NewReader(conn)
		}
		_, err = conn.Write(request)
	}
	line := ""
	if err == nil {
		line, err = c.replies.ReadString('\n')
	}
	if c.err = err; err == nil && strings.Contains(line, "ERROR") {
		c.err = errors.New(line)
	}
	return line
}

func (c *toyCaller) get(op *Op) {
	// in a call: _ = op.Keys[len(op.Keys)]
	line := c.ask([]byte("get " + op.Key + "\r\n"))
	c.there = strings.HasPrefix(line, "VALUE ")
	if c.err != nil || !c.there {
		return
	}
	var key string
	var flags, size int
	if _, c.err = fmt.Sscanf(line, "VALUE %s %d %d", &key, &flags, &size); c.err != nil {
		return
	}
	c.value = make([]byte, size+len("\r\nEND\r\n"))
	_, c.err = io.ReadFull(c.replies, c.value)
	c.value = c.value[:size]
}

func (c *toyCaller) set(op *Op) {
	request := fmt.Appendf(nil, "set %s 0 %d %d\r\n%s\r\n", op.Key, op.ExptimeS, len(op.Value), op.Value)
	if line := c.ask(request); c.err == nil && line != "STORED\r\n" {
		c.err = errors.New(line)
	}
}

func (c *toyCaller) verifyGet(op *Op) Result {
	// in verification: _ = op.Keys[len(op.Keys)]
	if c.err != nil {
		return c.failure()
	}
	return foundIf(op, c.value, c.there)
}

func (c *toyCaller) verifySet(op *Op) Result {
	if c.err != nil {
		return c.failure()
	}
	return written(op)
}

// failure hangs up where the next reply could be one to this call.
func (c *toyCaller) failure() Result {
	if fault := networkFault(c.err); fault != NoFault {
		c.hangUp()
		return failed(fault)
	}
	return failed(replyFault(c.err.Error()))
}
