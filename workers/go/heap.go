// Allocations and collections of the runtime in a run, by its own counters.

package main

import "runtime"

// Heap has the allocations and collections of a run.
type Heap struct {
	Allocations    uint64 `json:"allocations"`
	AllocatedBytes uint64 `json:"allocated_bytes"`
	Collections    uint32 `json:"collections"`
	CollectionNs   uint64 `json:"collection_ns"` // the pauses: its collector works beside the program
}

// heapNow has the counters since the start of the process. Reading them stops all goroutines for some µs.
func heapNow() Heap {
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	return Heap{now.Mallocs, now.TotalAlloc, now.NumGC, now.PauseTotalNs}
}

// since is the growth since an earlier reading.
func (h Heap) since(before Heap) *Heap {
	return &Heap{
		h.Allocations - before.Allocations, h.AllocatedBytes - before.AllocatedBytes,
		h.Collections - before.Collections, h.CollectionNs - before.CollectionNs,
	}
}
