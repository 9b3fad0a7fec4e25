// The times of whole groups of the tape (docs/tape.md). A lane has several outstanding operations, which may end in
// any order.

import { Histogram } from './histogram.mjs';

/** The groups of a lane. */
export class Groups {
  constructor(length) {
    this.length = length;
    this.taken = length; // operations of the newest group
    this.newest = null;
    this.free = []; // ended groups, for reuse
    this.ok = 0;
    this.times = new Histogram();
  }

  /** The next operation's group. */
  take() {
    if (this.taken === this.length) {
      this.taken = 0;
      this.newest = this.free.pop() ?? {};
      this.newest.left = this.length;
      this.newest.beganNs = Infinity;
      this.newest.endedNs = 0;
      this.newest.whole = true;
    }
    this.taken += 1;
    return this.newest;
  }

  /** Note an operation that has ended: whether it was right and counts, its begin and its end. */
  ended(group, ok, beganNs, nowNs) {
    group.whole &&= ok;
    if (beganNs < group.beganNs) group.beganNs = beganNs;
    if (nowNs > group.endedNs) group.endedNs = nowNs;
    group.left -= 1;
    if (group.left > 0) return;
    this.free.push(group);
    if (!group.whole) return;
    this.ok += 1;
    this.times.note(group.endedNs - group.beganNs);
  }

  /** A slice begins: a group that the last slice has cut does not count. */
  cut() {
    if (this.taken < this.length) this.newest.whole = false;
  }

  /** The groups of all lanes, for the message; null if they are not timed. */
  static message(lanes) {
    if (lanes[0].groups === null) return null;
    const times = new Histogram();
    for (const { groups } of lanes) times.add(groups.times);
    const ok = lanes.reduce((sum, { groups }) => sum + groups.ok, 0);
    return { length: lanes[0].groups.length, ok, time: times.encode() };
  }
}
