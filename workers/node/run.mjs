// The common part of the measured loops: their calls, their records, and their end.

import { OK, TIMEOUT } from './verify.mjs';
import { clock } from './window.mjs';
import { Timeline, SECTIONS } from './timeline.mjs';
import { LostCall } from './prepare.mjs';
import { Histogram } from './histogram.mjs';
import { Recorder } from './recorder.mjs';

const LOST_NS = 5e9; // a call that outlasts every time-out by this much will never return

/** One run: a window in which a loop plays calls. */
export class Run {
  constructor(calls, kinds, window, open) {
    this.calls = calls;
    this.window = window;
    this.timeoutNs = window.timeoutNs;
    this.open = open;
    this.timeline = new Timeline(window.durationNs);
    this.sections = [];
    for (let i = 0; i < (this.timeline.sliceNs > 0 ? SECTIONS : 1); i++) {
      this.sections[i] = [];
      for (const kind of kinds) this.sections[i][kind] = new Recorder(kind, open);
    }
    this.recorders = this.sections[0]; // of the current section
    this.lags = open ? new Histogram() : null;
    this.callLog = null;
    this.active = this.peak = this.queued = this.unsent = 0;
    this.arm();
    for (const call of calls) call.run = this;
  }

  /** `over` resolves at the end of the run, or rejects with an error. */
  arm() {
    this.over = new Promise((resolve, reject) => {
      this.finish = resolve;
      this.fail = reject;
    });
    this.over.catch(() => {}); // it may reject before the worker awaits it
  }

  /** The window's start is known. */
  begin() {
    this.timeline.begin(this.window.startNs);
    this.endedNs = this.window.startNs;
  }

  note(call, now, fault) {
    const tookNs = now - call.beganNs;
    let lagNs = 0;
    if (this.open) {
      lagNs = call.beganNs - call.dueNs;
      this.lags.note(lagNs);
    }
    const came = tookNs >= this.timeoutNs ? TIMEOUT : fault;
    const { timeline } = this;
    if (now >= timeline.endNs) this.recorders = this.sections[timeline.advance(now)];
    this.recorders[call.kind].note(call, tookNs, lagNs, came);
    if (this.callLog !== null) this.callLog.note(call, now, came);
    if (call.group !== null) call.lane.groups.ended(call.group, came === OK, call.beganNs, now);
    if (came === OK) timeline.note(lagNs + tookNs);
    this.endedNs = now;
  }

  /** Now everything has been played. */
  end() {
    this.endedNs = clock();
  }

  /** An error of this worker's own code ends the run. */
  abort(error) {
    this.window.stop();
    this.fail(error);
  }

  /** Operations that succeeded and that failed so far. */
  get progress() {
    let ops = 0;
    let errors = 0;
    for (const recorder of this.sections.flat()) {
      ops += recorder.ok;
      errors += recorder.failures;
    }
    return { ops, errors };
  }

  /** The recorders of the whole window, by kind. */
  get whole() {
    const whole = [];
    for (const recorders of this.sections) {
      recorders.forEach((recorder, kind) => {
        whole[kind] ??= new Recorder(kind, this.open);
        whole[kind].add(recorder);
      });
    }
    return whole;
  }

  /** Give up calls that last too long, if the library forgets them; else the run. */
  watch() {
    const now = clock();
    this.calls.forEach((call, i) => {
      const lastsNs = call.out ? now - call.beganNs : 0;
      if (lastsNs > call.session.giveUpAfterTimeouts * this.timeoutNs) this.calls[i] = call.giveUp();
      else if (lastsNs > 2 * this.timeoutNs + LOST_NS) this.fail(new LostCall('a call of the library does not return'));
    });
  }
}
