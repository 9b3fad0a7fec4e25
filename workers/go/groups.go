// The times of whole groups of the tape (docs/tape.md), whose operations a lane plays one after the other.

package main

// groups has the results of a lane's groups; nil if they are not timed.
type groups struct {
	length  uint64
	ok      int64
	place   uint64 // the next operation's place in its group
	beganNs int64
	whole   bool // all operations of the group so far were right and count
	times   *Histogram
}

func newGroups(length uint64) *groups {
	if length < 2 {
		return nil
	}
	return &groups{length: length, times: newHistogram()}
}

func (g *groups) free() {
	if g != nil {
		g.times.free()
	}
}

// note notes an operation: whether it was right and counts, its begin and its end.
func (g *groups) note(ok bool, beganNs, nowNs int64) {
	if g.place == 0 {
		g.beganNs, g.whole = beganNs, true
	}
	g.whole = g.whole && ok
	g.place++
	if g.place < g.length {
		return
	}
	g.place = 0
	if g.whole {
		g.ok++
		g.times.put(nowNs - g.beganNs)
	}
}

// cut discards a group that the last slice has cut. Call it when a slice begins.
func (g *groups) cut() {
	if g != nil {
		g.whole = false
	}
}

// groupsOf is the sum of all lanes; nil if groups are not timed.
func groupsOf(lanes []*lane) (*Groups, error) {
	if lanes[0].groups == nil {
		return nil, nil
	}
	times := newHistogram()
	defer times.free()
	sum := &Groups{Length: lanes[0].groups.length}
	for _, l := range lanes {
		sum.OK += l.groups.ok
		times.add(l.groups.times)
	}
	var err error
	sum.Time, err = times.encode()
	return sum, err
}
