// Closes connections after a number of calls and opens them again, between two calls, not timed. Each caller then has
// its own session, since it cannot close its share of a pool.

package main

import "strconv"

const reconnectAfter = "reconnect_after"

// renewal is the state of a lane's session.
type renewal struct {
	open        func() (Session, error)
	session     *Session // the player's reference to it
	after, made int64    // calls
	servers     int64
	renewed     int64 // connections
	reconnects  int64 // of earlier sessions
	err         error // why a new session could not be opened
}

// refuseRenewal says why the client cannot renew connections as requested; empty if it can.
func (c *Client) refuseRenewal(value string) string {
	after, err := strconv.ParseUint(value, 10, 63)
	switch {
	case c.inProcess():
		return "no option " + reconnectAfter + ": it has no connections"
	case err != nil || after < 1:
		return "option " + reconnectAfter + " is a number from 1 on, not " + strconv.Quote(value)
	}
	return ""
}

// openSessions opens one session for all callers, or one for each if connections are renewed.
func openSessions(client *Client, setup *Prepare) (sessions []Session, err error) {
	count, own := 1, *setup
	if setup.ReconnectAfter > 0 {
		count, own.Callers = setup.Callers, 1
	}
	for range count {
		session := client.New()
		sessions = append(sessions, session)
		if err := session.Open(&own); err != nil {
			return sessions, err
		}
	}
	return sessions, nil
}

// newRenewal is for the session of a caller; nil if it keeps its connections.
func newRenewal(client *Client, setup *Prepare, session *Session) *renewal {
	if setup.ReconnectAfter == 0 {
		return nil
	}
	own := *setup
	own.Callers = 1
	open := func() (Session, error) {
		session := client.New()
		return session, session.Open(&own)
	}
	return &renewal{open: open, session: session, after: setup.ReconnectAfter, servers: int64(len(setup.Servers))}
}

// use makes the lane use a session from now on.
func (l *lane) use(session Session) {
	l.flush, l.own = session.Flush, [kindCount]Handler{}
	for kind, steps := range session.Handlers() {
		l.own[kind] = steps
	}
	l.arm(session)
}

// arm makes the lane give up calls from now on, if the run asks for it.
func (l *lane) arm(session Session) {
	l.steps = l.own
	if cancelling, can := session.(Cancelling); can && l.open && l.givesUp != nil {
		l.steps = l.givesUp.steps(l.own, cancelling, l.timeline.startNs, &l.givenUp)
	}
}

// renew opens a new session if this one has made all its calls; false if that fails.
func (l *lane) renew() bool {
	r := l.renewal
	if r.made < r.after {
		return true
	}
	l.flush()
	(*r.session).Close()
	r.reconnects += (*r.session).Reconnects()
	if *r.session, r.err = r.open(); r.err != nil {
		return false
	}
	r.made = 0
	r.renewed += r.servers
	l.use(*r.session)
	return true
}

// failure is why the lane could not play on, or nil.
func (r *renewal) failure() error {
	if r == nil {
		return nil
	}
	return r.err
}

// connections are the numbers of lost and of renewed connections that were reopened since the player began.
func (p *Player) connections() (reconnects, renewed int64) {
	for _, session := range p.sessions {
		reconnects += session.Reconnects()
	}
	for _, l := range p.lanes {
		if l.renewal != nil {
			reconnects += l.renewal.reconnects
			renewed += l.renewal.renewed
		}
	}
	return reconnects, renewed
}
