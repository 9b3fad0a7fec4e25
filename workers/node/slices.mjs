// Slices: short parts of the tape, in turns with other workers. A caller goes on where its last slice ended.
//
// Operations of lead-ins have their own recorders. `begin_slices` allocates all recorders, so a change
// of turns allocates only a promise and an answer.

import { BadRequest } from './prepare.mjs';
import { ClosedRun, OpenRun } from './lane_loops.mjs';
import { Recorder } from './recorder.mjs';
import { OK, TIMEOUT } from './verify.mjs';
import { Window } from './window.mjs';

/**
 * A loop that plays slices. For a call, `fromNs` is the begin of its counted part, `endNs` its last completion,
 * `halfEndNs` the end of the first half, with `halfOps` operations.
 */
const sliced = (Loop) =>
  class extends Loop {
    constructor(calls, kinds, window) {
      super(calls, kinds, window);
      this.leadIn = [];
      for (const kind of kinds) this.leadIn[kind] = new Recorder(kind, this.open);
    }

    /** The next slice's window is known. */
    begin(leadInNs) {
      super.begin();
      this.arm();
      const { startNs, endNs } = this.window;
      this.leadInEndNs = startNs + leadInNs < endNs ? startNs + leadInNs : Infinity;
      this.middleNs = startNs + Math.floor((leadInNs + (endNs - startNs)) / 2);
      for (const call of this.calls) {
        call.fromNs = leadInNs === 0 ? startNs : Infinity;
        call.endNs = call.halfOps = 0;
        call.halfEndNs = Infinity;
        call.lane.groups?.cut();
      }
    }

    /** The totals since `begin_slices`. */
    get totals() {
      const totals = { ops: 0, errors: 0, leadIn: 0 };
      for (const recorder of this.recorders) {
        totals.ops += recorder?.ok ?? 0;
        totals.errors += recorder?.failures ?? 0;
      }
      for (const recorder of this.leadIn) totals.leadIn += recorder?.attempts ?? 0;
      return totals;
    }
  };

/** A call counts from its first completion after the lead-in on. */
class SlicedClosedRun extends sliced(ClosedRun) {
  /** A caller that made no call until the lead-in's end had no CPU: its counted part begins there. */
  free(call, now) {
    if (now >= this.leadInEndNs && call.endNs < this.leadInEndNs) call.fromNs = this.leadInEndNs;
    super.free(call, now);
  }

  note(call, now, fault) {
    const tookNs = now - call.beganNs;
    const came = tookNs >= this.timeoutNs ? TIMEOUT : fault;
    const counted = call.fromNs < Infinity;
    if (call.group !== null) call.lane.groups.ended(call.group, counted && came === OK, call.beganNs, now);
    if (counted) {
      this.recorders[call.kind].note(call, tookNs, 0, came);
      if (call.halfEndNs === Infinity) {
        call.halfOps += 1;
        if (now >= this.middleNs) call.halfEndNs = now;
      }
    } else {
      this.leadIn[call.kind].note(call, tookNs, 0, came);
      if (now >= this.leadInEndNs) call.fromNs = this.inProcess ? this.leadInEndNs : now;
    }
    call.endNs = this.endedNs = now;
  }

  end() {
    super.end();
    for (const call of this.calls) if (call.endNs > call.fromNs) call.endNs = this.endedNs;
  }

  /**
   * The means of the counted parts and of their first halves, and the operations of these. A part ends with the slice
   * at the earliest, to include time without a CPU; a half without a completion after the middle ends in the middle.
   */
  get counted() {
    let callers = 0;
    let sumNs = 0;
    let halfNs = 0;
    let halfOps = 0;
    const middleNs = Math.min(this.middleNs, this.window.endNs);
    for (const { lane, fromNs, endNs, halfEndNs, halfOps: ops } of this.calls) {
      if (!lane.more) continue;
      const sinceNs = fromNs < Infinity ? fromNs : this.leadInEndNs;
      const countedNs = Math.max(endNs, this.window.endNs) - sinceNs;
      if (countedNs <= 0) continue; // its library gave it no connection in the slice
      callers += 1;
      sumNs += countedNs;
      halfNs += Math.max(0, (halfEndNs < Infinity ? halfEndNs : middleNs) - sinceNs);
      halfOps += ops;
    }
    const mean = (sum) => (callers === 0 ? 0 : Math.round(sum / callers));
    return { elapsedNs: mean(sumNs), halfNs: mean(halfNs), halfOps };
  }
}

/** A call counts if it was due after the lead-in. */
class SlicedOpenRun extends sliced(OpenRun) {
  note(call, now, fault) {
    const tookNs = now - call.beganNs;
    const lagNs = call.beganNs - call.dueNs;
    const came = tookNs >= this.timeoutNs ? TIMEOUT : fault;
    const counted = this.counts(call.dueNs);
    if (counted) this.lags.note(lagNs);
    (counted ? this.recorders : this.leadIn)[call.kind].note(call, tookNs, lagNs, came);
    this.endedNs = now;
  }

  counts(dueNs) {
    return dueNs >= this.leadInEndNs;
  }

  get counted() {
    return { elapsedNs: Math.max(0, Math.round(this.window.endNs - this.leadInEndNs)), halfNs: 0, halfOps: 0 };
  }
}

/** The slices of a prepared trial, from `begin_slices` to `end_slices`. */
export class Slices {
  constructor(player) {
    const { calls, lanes, setup } = player;
    this.player = player;
    this.window = new Window(null, setup.timeoutMs * 1e6);
    const Loop = setup.tape.times === null ? SlicedClosedRun : SlicedOpenRun;
    this.run = new Loop(calls, setup.tape.kinds, this.window);
    this.run.inProcess = player.inProcess;
    if (player.inProcess) this.run.timeoutNs = Infinity;
    for (const lane of lanes) lane.begin(false, Infinity, 0);
    this.tapeNs = 0; // the instant at which the tape stands still between slices
    this.sum = { elapsedNs: 0, user: 0, system: 0, barriers: 0, reconnects: 0, renewed: 0 };
    this.before = this.run.totals;
  }

  /** Prepare the next slice, which a `stop` may end from now on. */
  begin({ length_us: lengthUs, lead_in_us: leadInUs = 0, start_unix_ns: startUnixNs = 0 }) {
    const whole = [lengthUs, leadInUs].every(Number.isSafeInteger);
    if (!whole || leadInUs < 0 || leadInUs > lengthUs) {
      throw new BadRequest('a slice has a length, and a lead-in that is not longer');
    }
    this.window.planSlice(lengthUs * 1000, startUnixNs);
    this.run.begin(leadInUs * 1000);
    for (const lane of this.player.lanes) lane.passNs += this.window.startNs - this.tapeNs;
    return this.run;
  }

  /** Play the slice; returns the answer. */
  async play() {
    const { run, window, sum, before } = this;
    const figures = await this.player.playWindow(run);
    this.tapeNs = Math.round(Math.max(window.startNs, window.endNs)); // a stop may come before the begin
    const { elapsedNs, halfNs, halfOps } = run.counted;
    sum.elapsedNs += elapsedNs;
    sum.user += figures.cpu.user;
    sum.system += figures.cpu.system;
    sum.barriers += figures.barriers;
    sum.reconnects += figures.reconnects;
    sum.renewed += figures.renewed;
    this.before = run.totals;
    return {
      type: 'slice_done',
      ops: this.before.ops - before.ops,
      errors: this.before.errors - before.errors,
      lead_in_ops: this.before.leadIn - before.leadIn,
      elapsed_ns: elapsedNs,
      half_ops: halfOps,
      half_ns: halfNs,
    };
  }
}
