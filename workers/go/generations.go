// Generations: the values of a key that show which write a read has brought.

package main

// The number of values of a key at a length. By the generation in the record of a read: the allowed ones.
const generations = 4

var rightGenerations = [generations][]uint8{{0, 1, 2, 3}, {1, 2, 3}, {2, 1}, {3, 1}}

// generation is of a write that of its value, of a read that of the lane's last write of its (first) key before it.
func (r *Record) generation() uint8 { return r.Flags >> 1 }

func (t *Tape) mayHaveGeneration(r *Record) bool {
	verb := r.Verb == Set || r.Verb == Get || r.Verb == Gets || r.Verb == Gat || r.Verb == Mget
	return verb && t.lanes > 0 && r.generation() < generations
}

// value is what a key holds at a length in a generation. Nil where there is none.
func (t *Tape) value(k uint32, length int, generation uint8) []byte {
	if uint64(length) > t.poolBytes {
		return nil
	}
	place := uint64(k)*786433 + uint64(length)*97 + uint64(generation)*262147
	at := place % (t.poolBytes - uint64(length) + 1)
	return t.pool[at : at+uint64(length) : at+uint64(length)]
}

// right tells whether a value that was read is a key's; `told` is the generation of the read's record.
func (t *Tape) right(k uint32, value []byte, told uint8) bool {
	if !t.verified {
		return true
	}
	if t.fixed && len(value) != int(t.lengths[k]) {
		return false
	}
	return string(value) == string(t.value(k, len(value), told)) || t.lanes > 0 && t.allowed(k, value, told)
}

// allowed says whether another generation than the reported one is right.
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

// begins notes a phase: a prefill that comes once more has failed before, and what it sent may still come.
func (t *Tape) begins(prefill bool) {
	if prefill && t.filled {
		t.anyGeneration.Store(true)
	}
	t.filled = t.filled || prefill
}
