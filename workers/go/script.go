// The next operation of a lane: records of the tape, or in the prefill keys.

package main

// next prepares the lane's next operation; false if there is none.
func (l *lane) next() bool {
	if l.left == 0 {
		return false
	}
	l.left--
	if l.prefill {
		return l.nextKey()
	}
	if l.renewal != nil && !l.renew() {
		return false
	}
	if l.at >= uint64(len(l.tape.records)) {
		l.at = l.place * l.tape.group
		l.passNs += int64(l.tape.periodNs)
		if l.at >= uint64(len(l.tape.records)) {
			return false // fewer groups than lanes
		}
	}
	l.fill(&l.tape.records[l.at])
	return true
}

// advance goes to the lane's next key, or its next record, which may be in its next group.
func (l *lane) advance() {
	if l.prefill {
		l.at += l.lanes
		return
	}
	l.at++
	if l.at%l.tape.group == 0 {
		l.at += (l.lanes - 1) * l.tape.group
	}
}

func (l *lane) nextKey() bool {
	if l.at >= l.tape.prefilled {
		return false
	}
	k := uint32(l.at)
	l.record = Record{Verb: Set, Run: 1, Key: k, Length: l.tape.lengths[k], ExptimeS: uint32(l.tape.exptimeS)}
	l.fill(&l.record)
	if l.at >= l.tape.counterAt {
		l.op.Value = []byte(counterText)
	}
	return true
}

func (l *lane) fill(r *Record) {
	op, facts := &l.op, &verbs[r.Verb]
	op.Record, op.Kind, op.Prefill, op.ExptimeS = r, r.kind(), l.prefill, r.ExptimeS
	op.Key, op.Value, op.Keys = "", nil, nil
	switch {
	case facts.batch:
		op.Keys = l.names[:r.Run]
		for i := range op.Keys {
			op.Keys[i] = l.tape.key(op.index(i))
		}
	case r.Run == 1:
		op.Key = l.tape.key(r.Key)
	}
	switch r.Verb {
	case Set, Add, Replace, Cas:
		op.Value = l.tape.value(r.Key, int(r.Length), r.generation())
	case Incr, Decr:
		op.Amount = uint64(r.Length)
	}
}
