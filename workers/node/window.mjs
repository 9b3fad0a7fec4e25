// The clock, waiting for an instant, and the window of a run.

import { performance } from 'node:perf_hooks';

const COARSE_NS = 2e6; // Node's timers count milliseconds, and are late by one or two
const WAKE_LATE_NS = 0.15e6; // a sleeping thread wakes some 0.1 ms late
const LOOK_NS = 20e6; // a wait checks at this interval whether the run was stopped
const AHEAD_NS = 20e6; // the time that lanes need to be ready before a window begins

/** Monotonic, in ns, as a double: exact to less than a ns for weeks. */
export const clock = () => performance.now() * 1e6;

/** The longest timer in ms that does not miss an instant; 0: poll until then. */
export function timerMs(leftNs) {
  return leftNs <= COARSE_NS ? 0 : Math.floor((Math.min(leftNs, LOOK_NS) - COARSE_NS) / 1e6);
}

const sleeper = new Int32Array(new SharedArrayBuffer(4));

/** Block this thread until shortly before an instant; it sees no event meanwhile. */
export function sleepUntil(untilNs) {
  const leftNs = untilNs - WAKE_LATE_NS - clock();
  if (leftNs > 0) Atomics.wait(sleeper, 0, 0, leftNs / 1e6);
}

/** The begin and the end of a run. A stop moves the end to now. */
export class Window {
  constructor(durationMs, timeoutNs) {
    this.startNs = this.endNs = Infinity;
    this.durationNs = durationMs === null ? Infinity : durationMs * 1e6;
    this.timeoutNs = timeoutNs;
    this.stopped = false;
  }

  /** Set the start once everything is ready: later preparation would take time of the window. */
  plan(startUnixNs, aheadNs = AHEAD_NS) {
    const unixNs = (performance.timeOrigin + performance.now()) * 1e6;
    this.startNs = clock() + Math.max(aheadNs, startUnixNs - unixNs);
    if (!this.stopped) this.endNs = this.startNs + this.durationNs;
  }

  /** Make it a slice's window, which may begin at once: its callers are ready. Whole ns add up without rounding. */
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

  /** After this instant, an open loop sends no more operations of its window. */
  get drainNs() {
    return this.stopped ? this.endNs : this.endNs + 2 * this.timeoutNs;
  }

  /** Wait for the start, at the end by polling the clock; or until a stop. */
  async begin() {
    for (let left; !this.stopped && (left = this.startNs - clock()) > 0; ) {
      if (timerMs(left) > 0) await new Promise((wake) => setTimeout(wake, timerMs(left)));
      else sleepUntil(this.startNs);
    }
  }
}

/** A promise with a time limit. */
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
