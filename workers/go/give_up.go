// Callers that give up calls, for runs that ask for it (PROTOCOL.md, `GiveUp`): the context of a call ends.

package main

import (
	"context"
	"time"
)

// Cancelling is a session with calls that take a context.
type Cancelling interface {
	// HandlersUntil are one caller's handlers for the kinds whose calls take a context: the result of
	// `current` at the begin of the call.
	HandlersUntil(current func() context.Context) Handlers
}

// GiveUp says which calls each caller gives up, in a part of the window.
type GiveUp struct {
	Every   int64 `json:"every"`
	AfterMs int64 `json:"after_ms"`
	BeginMs int64 `json:"begin_ms"`
	EndMs   int64 `json:"end_ms"`
}

// steps are a caller's handlers, some of whose calls end early. The window starts at startNs; `calls`
// counts the calls that could be given up.
func (g *GiveUp) steps(own [kindCount]Handler, session Cancelling, startNs int64, calls *int64) [kindCount]Handler {
	hasCome := func() bool {
		sinceMs := (clock() - startNs) / int64(time.Millisecond)
		if sinceMs < g.BeginMs || sinceMs >= g.EndMs {
			return false
		}
		*calls++
		return *calls%g.Every == 0
	}
	limit := time.Duration(g.AfterMs) * time.Millisecond
	var ctx context.Context
	until := session.HandlersUntil(func() context.Context { return ctx })
	for kind, step := range own {
		if step.Call == nil {
			continue
		}
		given, can := until[Kind(kind)]
		verify := step.Verify
		own[kind] = Handler{
			Call: func(op *Op) {
				verify = step.Verify
				if !hasCome() || !can {
					step.Call(op)
					return
				}
				verify = given.Verify
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(context.Background(), limit)
				defer cancel()
				given.Call(op)
			},
			Verify: func(op *Op) Result { return verify(op) },
		}
	}
	return own
}
