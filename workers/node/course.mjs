// A window as it went: a thousand slices, what ended in each; a hundred of them are a section. All
// room is there before the window, and an operation costs a comparison and two additions.

import { Times } from './tally.mjs';

export const SECTIONS = 10;
const SECTION_SLICES = 100;
const SLICES = SECTIONS * SECTION_SLICES;
// What ends after the window, in an open loop that is late, has slices too; the last has the rest.
const MOST_SLICES = 4 * SLICES;

const sectionOf = (slice) => Math.min(Math.floor(slice / SECTION_SLICES), SECTIONS - 1);

export class Course {
  /** Of a window that lasts so long, or for ever: then it has no slices. */
  constructor(durationNs) {
    this.sliceNs = Number.isFinite(durationNs) ? Math.floor(durationNs / SLICES) : 0;
    this.at = 0;
    this.ok = new Float64Array(MOST_SLICES);
    this.responseNs = new Float64Array(MOST_SLICES);
  }

  /** The window begins then. */
  begin(startNs) {
    this.startNs = startNs;
    this.endNs = this.sliceNs > 0 ? startNs + this.sliceNs : Infinity;
  }

  /** Go on to the slice that an instant is in; its section. */
  advance(now) {
    this.at = Math.min(Math.floor((now - this.startNs) / this.sliceNs), MOST_SLICES - 1);
    this.endNs = this.at === MOST_SLICES - 1 ? Infinity : this.startNs + (this.at + 1) * this.sliceNs;
    return sectionOf(this.at);
  }

  note(responseNs) {
    this.ok[this.at] += 1;
    this.responseNs[this.at] += responseNs;
  }

  /** The field of `done`; null without slices. */
  message() {
    if (this.sliceNs === 0) return null;
    const told = (values) => Array.from(values.subarray(0, this.at + 1), Math.round);
    return { slice_ns: this.sliceNs, ok: told(this.ok), response_ns: told(this.responseNs) };
  }

  /** The same of the sections, whose tallies these are. */
  sections(tallies) {
    if (this.sliceNs === 0) return null;
    const ok = new Array(SECTIONS).fill(0);
    this.ok.forEach((count, i) => (ok[sectionOf(i)] += count));
    const response = tallies.map((kinds) => {
      const sum = new Times();
      kinds.forEach((tally) => sum.add(tally.responses));
      return sum.encode();
    });
    return { length_ns: this.sliceNs * SECTION_SLICES, ok, response };
  }
}
