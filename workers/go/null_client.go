// null: no library. It measures the loop's own cost.

package main

func init() {
	register("null", &Client{
		Library:  "none",
		Wires:    []string{"none"},
		Features: []string{"threads", "open_loop"},
		New:      func() Session { return nullSession{} },
	})
}

// nullSession answers each read with the right value, and stores nothing: the keys of the prefill are
// always there, and no others.
type nullSession struct{ BaseSession }

func (nullSession) Open(*Prepare) error { return nil }

func (nullSession) Handlers() Handlers {
	var value []byte
	var there bool
	known := Handler{
		Call:   func(op *Op) { there = op.Tape.stored(op.Record.Key) },
		Verify: func(*Op) Result { return existedIf(there) },
	}
	read := Handler{
		Call: func(op *Op) {
			if there = op.Tape.stored(op.Record.Key); there {
				value = op.Tape.own(op.Record.Key)
			}
		},
		Verify: func(op *Op) Result { return foundIf(op, value, there) },
	}
	readMany := Handler{
		Call: func(*Op) {},
		Verify: func(op *Op) Result {
			return foundMany(op, 0, func(i int) ([]byte, bool) {
				return op.Tape.own(op.index(i)), op.Tape.stored(op.index(i))
			})
		},
	}
	answers := func(verify func(op *Op) Result) Handler { return Handler{func(*Op) {}, verify} }
	accepts := func(needs bool) Handler {
		return answers(func(op *Op) Result {
			if op.Tape.stored(op.Record.Key) != needs {
				return refused(op)
			}
			return written(op)
		})
	}
	return Handlers{
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
