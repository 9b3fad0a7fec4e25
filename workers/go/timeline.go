// The timeline of a window: the operations that ended in each of a thousand slices. A hundred slices are a section.
// All memory is allocated before the window; an operation costs a comparison and two additions.

package main

import "math"

const (
	sectionCount  = 10
	sectionSlices = 100
	sliceCount    = sectionCount * sectionSlices
	// Operations that end after a late open loop's window have slices too; the last has the rest.
	mostSlices = 4 * sliceCount
)

type timeline struct {
	startNs int64
	sliceNs int64 // 0: the window ends by a number of operations and has no slices
	endNs   int64 // the end of the current slice
	at      int
	slices  [mostSlices]slice
}

type slice struct{ ok, responseNs int64 }

// newTimeline is the timeline of a window. A duration of 0 means that the window has no slices.
func newTimeline(startNs, durationNs int64) *timeline {
	t := &timeline{startNs: startNs, sliceNs: durationNs / sliceCount, endNs: math.MaxInt64}
	if t.sliceNs > 0 {
		t.endNs = startNs + t.sliceNs
	}
	return t
}

// advance moves to the slice of an instant and returns its section.
func (t *timeline) advance(nowNs int64) int {
	t.at = int(min((nowNs-t.startNs)/t.sliceNs, mostSlices-1))
	t.endNs = t.startNs + int64(t.at+1)*t.sliceNs
	if t.at == mostSlices-1 {
		t.endNs = math.MaxInt64
	}
	return sectionOf(t.at)
}

func (t *timeline) note(responseNs int64) {
	t.slices[t.at].ok++
	t.slices[t.at].responseNs += responseNs
}

func sectionOf(slice int) int { return min(slice/sectionSlices, sectionCount-1) }

// timelineOf is the sum of all lanes, and the sections that it consists of; nil without slices.
func timelineOf(lanes []*lane) (*Timeline, *Sections, error) {
	sliceNs := lanes[0].timeline.sliceNs
	if sliceNs == 0 {
		return nil, nil, nil
	}
	sum := &Timeline{SliceNs: sliceNs}
	sections := &Sections{LengthNs: sliceNs * sectionSlices, OK: make([]int64, sectionCount)}
	for _, l := range lanes {
		for len(sum.OK) <= l.timeline.at {
			sum.OK, sum.ResponseNs = append(sum.OK, 0), append(sum.ResponseNs, 0)
		}
		for i := range l.timeline.at + 1 {
			slice := l.timeline.slices[i]
			sum.OK[i] += slice.ok
			sum.ResponseNs[i] += slice.responseNs
			sections.OK[sectionOf(i)] += slice.ok
		}
	}
	for section := range sectionCount {
		blob, err := sectionResponses(lanes, section)
		if err != nil {
			return nil, nil, err
		}
		sections.Response = append(sections.Response, blob)
	}
	return sum, sections, nil
}

func sectionResponses(lanes []*lane, section int) (*string, error) {
	whole := newHistogram()
	defer whole.free()
	for _, l := range lanes {
		for _, recorder := range l.sections[section] {
			if recorder != nil {
				whole.add(recorder.responses())
			}
		}
	}
	return whole.encode()
}
