// Generations: different values of a key, which show whose write a read has brought.

package main

// The number of values of a key at a length; the allowed ones, by the generation in the record of a read.
const generations = 4

var rightGenerations = [generations][]uint8{{0, 1, 2, 3}, {1, 2, 3}, {2, 1}, {3, 1}}

// generation is the one of a write's value, or of the lane's last write of a read's (first) key before it.
func (r *Record) generation() uint8 { return r.Flags >> 1 }

func (t *Tape) mayHaveGeneration(r *Record) bool {
	verb := r.Verb == Set || r.Verb == Get || r.Verb == Gets || r.Verb == Gat || r.Verb == Mget
	return verb && t.lanes > 0 && r.generation() < generations
}

// value is a key's value at a length in a generation; nil if there is none.
func (t *Tape) value(k uint32, length int, generation uint8) []byte {
	if uint64(length) > t.poolBytes {
		return nil
	}
	place := uint64(k)*786433 + uint64(length)*97 + uint64(generation)*262147
	at := place % (t.poolBytes - uint64(length) + 1)
	return t.pool[at : at+uint64(length) : at+uint64(length)]
}

// right tells whether a read may bring a value; `told` is the generation in the read's record.
func (t *Tape) right(k uint32, value []byte, told uint8) bool {
	if !t.verified {
		return true
	}
	if t.fixed && len(value) != int(t.lengths[k]) {
		return false
	}
	return string(value) == string(t.value(k, len(value), told)) || t.lanes > 0 && t.allowed(k, value, told)
}

// allowed tells whether another generation than the record's is right.
func (t *Tape) allowed(k uint32, value []byte, told uint8) bool {
	if t.anyGeneration.Load() {
		told = 0
	}
	for _, generation := range rightGenerations[told] {
		if string(value) == string(t.value(k, len(value), generation)) {
			return true
		}
	}
	return false
}

// begins notes a phase: a second prefill means that the first failed, and its writes may still arrive.
func (t *Tape) begins(prefill bool) {
	if prefill && t.filled {
		t.anyGeneration.Store(true)
	}
	t.filled = t.filled || prefill
}
