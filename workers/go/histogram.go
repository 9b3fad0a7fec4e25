// Histograms with HdrHistogram's buckets, outside of the Go heap, so that they do not change how often
// the collector runs.

package main

import (
	"fmt"
	"math/bits"
	"syscall"
	"unsafe"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

const (
	lowestNs  = 1
	highestNs = 100_000_000_000
	digits    = 3
	// Each ns up to 2048, then 1024 steps to each doubling.
	linearBits  = 11
	bucketCount = 28 << (linearBits - 1)
)

// Histogram has the counts by bucket. Unwritten pages take no memory.
type Histogram struct {
	counts []int64
	pages  []byte
}

func newHistogram() *Histogram {
	const size = bucketCount * int(unsafe.Sizeof(int64(0)))
	pages, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		panic(fmt.Sprintf("no memory for a histogram: %v", err))
	}
	return &Histogram{unsafe.Slice((*int64)(unsafe.Pointer(&pages[0])), bucketCount), pages}
}

// free returns the memory of histograms, which are empty then.
func (t *Histogram) free() {
	if t != nil {
		_ = syscall.Munmap(t.pages)
		t.counts, t.pages = nil, nil
	}
}

// put records a time; a time beyond the bounds counts as the bound.
func (t *Histogram) put(ns int64) {
	value := uint64(min(max(ns, lowestNs), highestNs))
	shift := max(bits.Len64(value)-linearBits, 0)
	t.counts[shift<<(linearBits-1)+int(value>>shift)]++
}

func (t *Histogram) add(other *Histogram) {
	for i, count := range other.counts {
		t.counts[i] += count
	}
}

// any tells whether it has a time.
func (t *Histogram) any() bool {
	for _, count := range t.counts {
		if count != 0 {
			return true
		}
	}
	return false
}

// encode returns the text of a histogram for messages; nil if it is empty.
func (t *Histogram) encode() (*string, error) {
	if t == nil || !t.any() {
		return nil, nil
	}
	counted := hdr.Import(&hdr.Snapshot{
		LowestTrackableValue: lowestNs, HighestTrackableValue: highestNs, SignificantFigures: digits, Counts: t.counts,
	})
	bytes, err := counted.Encode(hdr.V2CompressedEncodingCookieBase)
	if err != nil {
		return nil, err
	}
	text := string(bytes)
	return &text, nil
}
