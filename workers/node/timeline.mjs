// The timeline of a window: the operations that ended in each of a thousand slices. A hundred slices are a section.
// All memory is allocated before the window; an operation costs a comparison and two additions.

import { Histogram } from './histogram.mjs';

export const SECTIONS = 10;
const SECTION_SLICES = 100;
const SLICES = SECTIONS * SECTION_SLICES;
// Operations that end after a late open loop's window have slices too; the last has the rest.
const MAX_SLICES = 4 * SLICES;

const sectionOf = (slice) => Math.min(Math.floor(slice / SECTION_SLICES), SECTIONS - 1);

export class Timeline {
  /** For a window of this duration; an endless window has no slices. */
  constructor(durationNs) {
    this.sliceNs = Number.isFinite(durationNs) ? Math.floor(durationNs / SLICES) : 0;
    this.at = 0;
    this.ok = new Float64Array(MAX_SLICES);
    this.responseNs = new Float64Array(MAX_SLICES);
  }

  /** Set the window's begin. */
  begin(startNs) {
    this.startNs = startNs;
    this.endNs = this.sliceNs > 0 ? startNs + this.sliceNs : Infinity;
  }

  /** Go on to the slice of an instant; returns its section. */
  advance(now) {
    this.at = Math.min(Math.floor((now - this.startNs) / this.sliceNs), MAX_SLICES - 1);
    this.endNs = this.at === MAX_SLICES - 1 ? Infinity : this.startNs + (this.at + 1) * this.sliceNs;
    return sectionOf(this.at);
  }

  note(responseNs) {
    this.ok[this.at] += 1;
    this.responseNs[this.at] += responseNs;
  }

  /** The field of `done`; null without slices. */
  message() {
    if (this.sliceNs === 0) return null;
    const list = (values) => Array.from(values.subarray(0, this.at + 1), Math.round);
    return { slice_ns: this.sliceNs, ok: list(this.ok), response_ns: list(this.responseNs) };
  }

  /** The same for the sections, from their recorders. */
  sections(recorders) {
    if (this.sliceNs === 0) return null;
    const ok = new Array(SECTIONS).fill(0);
    this.ok.forEach((count, i) => (ok[sectionOf(i)] += count));
    const response = recorders.map((kinds) => {
      const sum = new Histogram();
      kinds.forEach((recorder) => sum.add(recorder.responses));
      return sum.encode();
    });
    return { length_ns: this.sliceNs * SECTION_SLICES, ok, response };
  }
}
