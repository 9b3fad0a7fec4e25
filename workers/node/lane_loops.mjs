// The loops that are measured: a closed one, and one with a schedule.

import { OK, TIMEOUT } from './verify.mjs';
import { clock, sleepUntil, timerMs } from './window.mjs';
import { Timeline, SECTIONS } from './timeline.mjs';
import { LostCall } from './prepare.mjs';
import { Histogram } from './histogram.mjs';
import { Recorder } from './recorder.mjs';

const TURN_NS = 20e6; // other things of the event loop get their turn at least this often
const LOST_NS = 5e9; // a call that outlasts every time-out by this much will not come back

/** What both loops have in common: whose calls they are, what is noted, and when all is over. */
class Run {
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
    this.recorders = this.sections[0]; // of the section that is going on
    this.lags = open ? new Histogram() : null;
    this.active = this.peak = this.queued = this.unsent = 0;
    this.over = new Promise((resolve, reject) => {
      this.finish = resolve;
      this.fail = reject;
    });
    this.over.catch(() => {}); // it may fail before anybody waits for it
    for (const call of calls) call.run = this;
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
    if (came === OK) timeline.note(lagNs + tookNs);
    this.endedNs = now;
  }

  /** Now is the end of all that was asked for. */
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

  /** Look after calls that last too long: give them up where the library forgets them, or the run. */
  watch() {
    const now = clock();
    this.calls.forEach((call, i) => {
      const lastsNs = call.out ? now - call.beganNs : 0;
      if (lastsNs > call.session.giveUpAfterTimeouts * this.timeoutNs) this.calls[i] = call.giveUp();
      else if (lastsNs > 2 * this.timeoutNs + LOST_NS) this.fail(new LostCall('a call of the library does not return'));
    });
  }
}

/** Call after call until the window ends. */
export class ClosedRun extends Run {
  constructor(calls, kinds, window) {
    super(calls, kinds, window, false);
  }

  start() {
    this.turnNs = clock() + TURN_NS;
    this.playing = this.calls.length;
    for (const call of [...this.calls]) this.free(call, clock());
  }

  /** Go on with a call that is free: until one has to be waited for, or others want their turn. */
  free(call, now) {
    const { window } = this;
    while (now < window.endNs && call.lane.more) {
      if (now >= this.turnNs) {
        setImmediate(call.resume);
        return;
      }
      call.lane.fill(call);
      call.begin();
      if (call.out) return;
      now = this.endedNs;
    }
    this.playing -= 1;
    if (this.playing === 0) this.finish();
  }

  resume(call) {
    const now = clock();
    this.turnNs = now + TURN_NS;
    this.free(call, now);
  }

  stopped() {} // every call sees the window's end before the next one
}

/** Each call when it is due, or as soon after that as its lane has one free. */
export class OpenRun extends Run {
  constructor(calls, kinds, window) {
    super(calls, kinds, window, true);
    this.lanes = new Map(); // and the calls of each that are free
    for (const call of calls) this.lanes.set(call.lane, []);
    for (const call of calls) this.lanes.get(call.lane).push(call);
    this.wakeNs = Infinity;
  }

  start() {
    this.pump();
  }

  stopped() {
    this.pump();
  }

  free(call, now) {
    const { lane } = call;
    const idle = this.lanes.get(lane);
    const waits = idle.length === 0 && lane.more && lane.dueNs < Math.min(now, this.window.endNs);
    if (waits) this.queued += 1; // it came due while none was free
    idle.push(call);
    this.serve(lane);
    this.sleep();
  }

  pump() {
    this.wakeNs = Infinity;
    for (const lane of this.lanes.keys()) this.serve(lane);
    this.sleep();
  }

  /** The next call is due too soon for a timer: look for replies, where any may come, till it is. */
  poll() {
    if (this.active === 0) sleepUntil(this.wakeNs);
    this.pump();
  }

  /** Make the calls of a lane that are due, as many as it has free. */
  serve(lane) {
    const idle = this.lanes.get(lane);
    const { window } = this;
    for (let now; idle.length > 0 && lane.more && lane.dueNs <= (now = clock()); ) {
      if (lane.dueNs >= window.endNs || now >= window.drainNs) break;
      const call = idle.pop();
      call.dueNs = lane.dueNs;
      lane.fill(call);
      call.begin();
      if (!call.out) idle.push(call);
    }
  }

  /** Sleep until the next call is due that could be made then; or end, if there is none. */
  sleep() {
    const now = clock();
    const { window } = this;
    let nextNs = Infinity;
    for (const [lane, idle] of this.lanes) {
      const left = lane.more && lane.dueNs < window.endNs && now < window.drainNs;
      if (left && idle.length > 0) nextNs = Math.min(nextNs, lane.dueNs);
    }
    if (nextNs === Infinity) {
      if (this.active === 0) this.close(now);
      return;
    }
    if (nextNs >= this.wakeNs) return;
    this.rouse();
    this.wakeNs = nextNs;
    const ms = timerMs(nextNs - now);
    if (ms > 0) this.timer = setTimeout(() => this.pump(), ms);
    else this.soon = setImmediate(() => this.poll());
  }

  rouse() {
    clearTimeout(this.timer);
    clearImmediate(this.soon);
  }

  close(now) {
    this.rouse();
    this.noteUnsent(now);
    this.finish();
  }

  /** Note what was due in the window and will not be sent: it waited at least until now. */
  noteUnsent(now) {
    const ended = Math.min(this.window.endNs, now);
    const call = {};
    for (const lane of this.lanes.keys()) {
      while (lane.more && lane.dueNs < ended) {
        const waitedNs = now - lane.dueNs;
        lane.fill(call);
        this.recorders[call.kind].response.note(waitedNs);
        this.unsent += 1;
      }
    }
  }
}
