// Allocations and collections of the runtime in a run, by its own counters.

package main

import "runtime"

// Heap has the allocations and collections of a run.
type Heap struct {
	Allocations    uint64 `json:"allocations"`
	AllocatedBytes uint64 `json:"allocated_bytes"`
	Collections    uint32 `json:"collections"`
	CollectionNs   uint64 `json:"collection_ns"` // the pauses: its collector works beside the program
	Priced         uint64 `json:"priced"`        // allocations after the run, and their CPU time
	PricedNs       uint64 `json:"priced_ns"`
}

const (
	priced      = 200_000 // enough for some collections
	pricedBytes = 64
)

var pricedSink []byte

// heapNow has the counters since the start of the process. Reading them stops all goroutines for some µs.
func heapNow() Heap {
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	return Heap{
		Allocations: now.Mallocs, AllocatedBytes: now.TotalAlloc,
		Collections: now.NumGC, CollectionNs: now.PauseTotalNs,
	}
}

// pricedNs is the CPU time of `priced` allocations, with that of the collector.
func pricedNs() uint64 {
	beforeUserNs, beforeSystemNs := cpuNs()
	for range priced {
		pricedSink = make([]byte, pricedBytes)
	}
	userNs, systemNs := cpuNs()
	return uint64(userNs - beforeUserNs + systemNs - beforeSystemNs)
}

// since is the growth since an earlier reading, and the cost of further allocations.
func (h Heap) since(before Heap) *Heap {
	return &Heap{
		h.Allocations - before.Allocations, h.AllocatedBytes - before.AllocatedBytes,
		h.Collections - before.Collections, h.CollectionNs - before.CollectionNs, priced, pricedNs(),
	}
}
