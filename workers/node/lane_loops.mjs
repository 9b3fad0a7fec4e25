// The measured loops: a closed one, and one with a schedule.

import { Call } from './lane.mjs';
import { Run } from './run.mjs';
import { clock, sleepUntil, timerMs } from './window.mjs';

const TURN_NS = 20e6; // after this time, other events of the event loop get their turn

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

  /** Go on with a free call, until one has to wait or other events need their turn. */
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

/** Each call when it is due, or as soon after that as its lane has a free one. */
export class OpenRun extends Run {
  constructor(calls, kinds, window) {
    super(calls, kinds, window, true);
    this.lanes = new Map(); // lanes, with the free calls of each
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
    if (waits && this.counts(lane.dueNs)) this.queued += 1; // it came due while none was free
    idle.push(call);
    this.serve(lane);
    this.sleep();
  }

  /** Whether an operation that is due at an instant counts. */
  counts() {
    return true;
  }

  pump() {
    this.wakeNs = Infinity;
    for (const lane of this.lanes.keys()) this.serve(lane);
    this.sleep();
  }

  /** The next call is due too soon for a timer: until then, look for replies. */
  poll() {
    if (this.active === 0) sleepUntil(this.wakeNs);
    this.pump();
  }

  /** Make the due calls of a lane, as far as it has free ones. */
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

  /** Sleep until the next call that a lane can make is due; end if there is none. */
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

  /** Note operations that were due in the window and that will not be sent: they waited at least until now. */
  noteUnsent(now) {
    const ended = Math.min(this.window.endNs, now);
    for (const lane of this.lanes.keys()) {
      const call = new Call(lane, null);
      while (lane.more && lane.dueNs < ended) {
        const { dueNs } = lane;
        lane.fill(call);
        if (!this.counts(dueNs)) continue;
        this.recorders[call.kind].response.note(now - dueNs);
        this.unsent += 1;
      }
    }
  }
}
