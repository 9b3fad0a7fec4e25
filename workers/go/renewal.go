// Connections that are closed after a number of calls, and opened again: between two calls, where no time is taken.
// Each caller has a session of its own then, as it cannot close its share of a pool.

package main

import "strconv"

const reconnectAfter = "reconnect_after"

// renewal is what a lane knows of the life of its session.
type renewal struct {
	open        func() (Session, error)
	session     *Session // where its player has it
	after, made int64    // calls
	servers     int64
	renewed     int64 // connections
	reconnects  int64 // of the sessions before this one
	err         error // a server could not be reached again
}

// refuseRenewal says why connections cannot be renewed as asked; empty if they can.
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

// openSessions are one that all callers share, or one for each whose connections are renewed.
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

// newRenewal is for the session of a caller; nil if its connections stay.
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

// use makes the lane call a session from now on.
func (l *lane) use(session Session) {
	l.flush, l.own = session.Flush, [kindCount]Handler{}
	for kind, steps := range session.Handlers() {
		l.own[kind] = steps
	}
	l.arm(session)
}

// arm has calls given up from now on if the run asks for it.
func (l *lane) arm(session Session) {
	l.steps = l.own
	if cancelling, can := session.(Cancelling); can && l.open && l.givesUp != nil {
		l.steps = l.givesUp.steps(l.own, cancelling, l.timeline.startNs, &l.givenUp)
	}
}

// renew makes way for a new session if this one has had its calls; false if a server cannot be reached.
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

// connections are those that were opened again since the player began: lost ones, and those that were renewed.
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
