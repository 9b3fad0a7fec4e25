// A window as it went: a thousand slices, what ended in each; a hundred of them are a section. All
// room is there before the window, and an operation costs a comparison and two additions.

package main

import "math"

const (
	sectionCount  = 10
	sectionSlices = 100
	sliceCount    = sectionCount * sectionSlices
	// What ends after the window, in an open loop that is late, has slices too; the last has the rest.
	mostSlices = 4 * sliceCount
)

type course struct {
	startNs int64
	sliceNs int64 // 0: the window ends by a number of operations and has no slices
	endNs   int64 // of the slice that is going on
	at      int
	slices  [mostSlices]slice
}

type slice struct{ ok, responseNs int64 }

// newCourse is that of a window which begins then and lasts so long, or 0.
func newCourse(startNs, durationNs int64) *course {
	c := &course{startNs: startNs, sliceNs: durationNs / sliceCount, endNs: math.MaxInt64}
	if c.sliceNs > 0 {
		c.endNs = startNs + c.sliceNs
	}
	return c
}

// advance goes on to the slice that an instant is in, and tells its section.
func (c *course) advance(nowNs int64) int {
	c.at = int(min((nowNs-c.startNs)/c.sliceNs, mostSlices-1))
	c.endNs = c.startNs + int64(c.at+1)*c.sliceNs
	if c.at == mostSlices-1 {
		c.endNs = math.MaxInt64
	}
	return sectionOf(c.at)
}

func (c *course) note(responseNs int64) {
	c.slices[c.at].ok++
	c.slices[c.at].responseNs += responseNs
}

func sectionOf(slice int) int { return min(slice/sectionSlices, sectionCount-1) }

// courseOf is the sum of all lanes, and the sections that it consists of; nil without slices.
func courseOf(lanes []*lane) (*Course, *Sections, error) {
	sliceNs := lanes[0].course.sliceNs
	if sliceNs == 0 {
		return nil, nil, nil
	}
	told := &Course{SliceNs: sliceNs}
	sections := &Sections{LengthNs: sliceNs * sectionSlices, OK: make([]int64, sectionCount)}
	for _, l := range lanes {
		for len(told.OK) <= l.course.at {
			told.OK, told.ResponseNs = append(told.OK, 0), append(told.ResponseNs, 0)
		}
		for i := range l.course.at + 1 {
			slice := l.course.slices[i]
			told.OK[i] += slice.ok
			told.ResponseNs[i] += slice.responseNs
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
	return told, sections, nil
}

func sectionResponses(lanes []*lane, section int) (*string, error) {
	whole := newTimes()
	defer whole.free()
	for _, l := range lanes {
		for _, tally := range l.sections[section] {
			if tally != nil {
				whole.add(tally.responses())
			}
		}
	}
	return whole.encode()
}
