// null: no library at all. What is measured with it is the loop's own cost.

package main

var null = &Client{
	Library:  "none",
	Wires:    []string{"none"},
	Features: []string{"threads", "open_loop"},
	New:      func() Session { return nothing{} },
}

// nothing answers each read with what it has to bring, and does nothing else. What is stored before
// anything is timed is there; it remembers nothing else.
type nothing struct{}

func (nothing) Open(*Setup) error { return nil }
func (nothing) Settle() bool      { return false }
func (nothing) Reconnects() int64 { return 0 }
func (nothing) Close()            {}

func (nothing) Lane() Lane {
	var value []byte
	var there bool
	known := Steps{
		Call:  func(op *Op) { there = op.Tape.stored(op.Record.Key) },
		Judge: func(*Op) Result { return knownIf(there) },
	}
	read := Steps{
		Call: func(op *Op) {
			if there = op.Tape.stored(op.Record.Key); there {
				value = op.Tape.own(op.Record.Key)
			}
		},
		Judge: func(op *Op) Result { return foundIf(op, value, there) },
	}
	readMany := Steps{
		Call: func(*Op) {},
		Judge: func(op *Op) Result {
			return foundMany(op, 0, func(i int) ([]byte, bool) {
				return op.Tape.own(op.index(i)), op.Tape.stored(op.index(i))
			})
		},
	}
	answers := func(judge func(op *Op) Result) Steps { return Steps{func(*Op) {}, judge} }
	accepts := func(needs bool) Steps {
		return answers(func(op *Op) Result {
			if op.Tape.stored(op.Record.Key) != needs {
				return refused(op)
			}
			return written(op)
		})
	}
	return Lane{
		Get.kind(false): read, Gets.kind(false): read, Gat.kind(false): read,
		Mget.kind(false): readMany,
		Set.kind(false):  answers(written),
		Add.kind(false):  accepts(false), Replace.kind(false): accepts(true),
		Delete.kind(false): known, Touch.kind(false): known,
		Incr.kind(false): known, Decr.kind(false): known,
		Cas.kind(false): answers(func(op *Op) Result {
			if !op.Tape.stored(op.Record.Key) {
				return missed
			}
			return swapped(op, true)
		}),
		Version.kind(false): answers(func(*Op) Result { return Result{} }),
	}
}
