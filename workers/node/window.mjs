// The clock, and what depends on it alone: waiting for an instant, and the window of a run.

import { performance } from 'node:perf_hooks';

const COARSE_NS = 2e6; // a timer of Node is one of milliseconds, and late by one or two
const WAKE_LATE_NS = 0.15e6; // a thread that is put to sleep is late by some 0.1 ms
const LOOK_NS = 20e6; // a wait looks this often whether it is still wanted
const AHEAD_NS = 20e6; // lanes need a moment to be there before a window begins

/** Monotonic, in ns, as a double: exact to less than a ns for weeks. */
export const clock = () => performance.now() * 1e6;

/** How long a timer may be set for without missing an instant, in ms; 0: poll until it is there. */
export function timerMs(leftNs) {
  return leftNs <= COARSE_NS ? 0 : Math.floor((Math.min(leftNs, LOOK_NS) - COARSE_NS) / 1e6);
}

const sleeper = new Int32Array(new SharedArrayBuffer(4));

/** Sleep until shortly before an instant, and nothing else with this thread: no event is seen meanwhile. */
export function sleepUntil(untilNs) {
  const leftNs = untilNs - WAKE_LATE_NS - clock();
  if (leftNs > 0) Atomics.wait(sleeper, 0, 0, leftNs / 1e6);
}

/** When a run begins and what ends it. Its end moves to now when the run is stopped. */
export class Window {
  constructor(durationMs, timeoutNs) {
    this.startNs = this.endNs = Infinity;
    this.durationNs = durationMs === null ? Infinity : durationMs * 1e6;
    this.timeoutNs = timeoutNs;
    this.stopped = false;
  }

  /** Set its start, once all is ready: what takes longer than lanes need would be time of the window. */
  plan(startUnixNs, aheadNs = AHEAD_NS) {
    const unixNs = (performance.timeOrigin + performance.now()) * 1e6;
    this.startNs = clock() + Math.max(aheadNs, startUnixNs - unixNs);
    if (!this.stopped) this.endNs = this.startNs + this.durationNs;
  }

  /** It is a slice's now, and may begin at once: its callers are there. Whole ns add up without rounding. */
  planSlice(durationNs, startUnixNs) {
    this.stopped = false;
    this.plan(startUnixNs, 0);
    this.startNs = Math.round(this.startNs);
    this.endNs = this.startNs + durationNs;
  }

  stop() {
    this.stopped = true;
    this.endNs = Math.min(this.endNs, clock());
  }

  /** After this instant, the rest of an open loop's window is never sent. */
  get drainNs() {
    return this.stopped ? this.endNs : this.endNs + 2 * this.timeoutNs;
  }

  /** Wait for its start, the last bit by asking the clock; or until it is stopped. */
  async begin() {
    for (let left; !this.stopped && (left = this.startNs - clock()) > 0; ) {
      if (timerMs(left) > 0) await new Promise((wake) => setTimeout(wake, timerMs(left)));
      else sleepUntil(this.startNs);
    }
  }
}

/** A promise that is not waited for any longer than so. */
export async function within(ms, promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(what)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
