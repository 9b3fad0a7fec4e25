// One prepared trial: the library with its connections open, and the lanes that use it.

import { Window, within } from './window.mjs';
import { callLogTo } from './call_log.mjs';
import { Session } from './client.mjs';
import { Groups } from './groups.mjs';
import { heapMessage, heapProfiler } from './heap.mjs';
import { KINDS, SET } from './kinds.mjs';
import { Call, Lane } from './lane.mjs';
import { ConnectError } from './prepare.mjs';
import { RenewedCall, takeRenewed, withRenewed } from './renewal.mjs';
import { ClosedRun, OpenRun } from './lane_loops.mjs';
import { Slices } from './slices.mjs';
import { sockets } from './sockets.mjs';

const WATCH_MS = 20;
const ENDING_MS = 5000;

export class Player {
  constructor(client, setup) {
    this.client = client;
    this.setup = setup;
    this.inProcess = client.wires[0] === 'none';
    this.prefilled = false;
    this.sessions = [];
    this.run = null;
    this.slices = null;
  }

  /** Connect, and prepare every operation. Throws ConnectError. */
  async open() {
    const { setup } = this;
    const { threads, segment, tape } = setup;
    sockets.reset(setup.common);
    await this.connect(this.inProcess ? 1 : setup.connections);
    const lanes = [];
    for (let t = 0; t < threads; t++) {
      lanes.push(new Lane(tape, segment[0] * threads + t, segment[1] * threads));
    }
    this.lanes = lanes;
    this.calls = lanes.flatMap((lane, t) => this.callsOf(lane, t));
  }

  async connect(count) {
    const { client, setup } = this;
    for (let i = 0; i < count; i++) this.sessions.push(new Session(client, setup));
    try {
      await Promise.all(this.sessions.map((session) => session.connect()));
    } catch (error) {
      throw new ConnectError(`${setup.servers.join(', ')}: ${error?.message || error?.code || error}`);
    }
  }

  /** The most outstanding calls of a lane: `depth` for each of its connections. */
  callsOf(lane, t) {
    const { sessions } = this;
    const { threads, depth } = this.setup;
    const own = sessions.filter((_, i) => (sessions.length > threads ? i % threads === t : i === t % sessions.length));
    const Kind = this.setup.reconnectAfter > 0 ? RenewedCall : Call;
    return own.flatMap((session) => Array.from({ length: depth }, () => new Kind(lane, session)));
  }

  /** Prepare a phase. */
  begin(request) {
    const { tape, timeoutMs } = this.setup;
    const prefill = request.phase === 'prefill';
    this.noteFill(prefill);
    const window = new Window(request.duration_ms ?? null, timeoutMs * 1e6);
    const limit = prefill ? null : (request.ops ?? null);
    const Loop = tape.times !== null && !prefill ? OpenRun : ClosedRun;
    this.run = new Loop(this.calls, prefill ? new Set([SET]) : tape.kinds, window);
    this.run.callLog = callLogTo(request.calls);
    this.countsHeap = request.heap === true;
    if (this.inProcess) this.run.timeoutNs = Infinity; // without a server, no call is late
    this.quiet = !prefill && this.setup.quiet;
    this.slices = null;
    globalThis.gc?.(); // the run must not collect earlier garbage
    window.plan(request.start_unix_ns ?? 0);
    this.run.begin();
    this.lanes.forEach((lane, t) => lane.begin(prefill, part(limit, t, this.lanes.length), window.startNs));
    return this.run;
  }

  /** A second prefill means that the first failed, and its writes may still arrive. */
  noteFill(prefill) {
    if (prefill && this.prefilled) this.setup.tape.anyGeneration = true;
    this.prefilled ||= prefill;
  }

  /** Play the prepared phase; the fields of `done`. */
  async play(phase) {
    const { run } = this;
    const { endedNs, sentNs, ...figures } = await this.playWindow(run);
    const since = (ns) => Math.max(0, Math.round(ns - run.window.startNs));
    return {
      ...done(phase, run, figures),
      elapsed_ns: since(endedNs),
      send_elapsed_ns: since(sentNs),
      groups: Groups.message(this.lanes),
      timeline: run.timeline.message(),
      sections: run.timeline.sections(run.sections),
    };
  }

  /** Play a run's window; its times. */
  async playWindow(run) {
    const watch = setInterval(() => run.watch(), WATCH_MS);
    const opened = sockets.opened;
    takeRenewed(this.sessions);
    try {
      const profiler = this.countsHeap ? heapProfiler() : null;
      await run.window.begin();
      const usedBefore = process.cpuUsage();
      run.start();
      await run.over;
      const sentNs = run.endedNs;
      const barriers = await this.endQuiet(run);
      const cpu = process.cpuUsage(usedBefore);
      const heap = heapMessage(profiler);
      return withRenewed(this.sessions, sockets.opened - opened, { endedNs: run.endedNs, sentNs, barriers, cpu, heap });
    } finally {
      clearInterval(watch);
      run.callLog?.write();
      this.calls = run.calls;
      this.run = null;
    }
  }

  /** Prepare everything that slices need. */
  beginSlices() {
    this.quiet = this.setup.quiet;
    this.slices = new Slices(this);
    globalThis.gc?.();
  }

  beginSlice(request) {
    this.run = this.slices.begin(request);
    return this.run;
  }

  /** The fields of `done` of all slices together. */
  endSlices() {
    const { run, sum } = this.slices;
    this.slices = null;
    return {
      ...done('measure', run, { ...sum, cpu: sum }),
      elapsed_ns: sum.elapsedNs,
      send_elapsed_ns: sum.elapsedNs,
      groups: Groups.message(this.lanes),
      lead_in: played(run.leadIn, (recorder) => recorder.counts()),
    };
  }

  /** Send commands with a reply after operations without one. */
  async endQuiet(run) {
    if (!this.quiet || run.endedNs === run.window.startNs) return 0;
    try {
      const ends = Promise.all(this.sessions.map((session) => session.barrier()));
      await within(ENDING_MS, ends, 'no answer');
    } catch (error) {
      console.error(`no answer after the last operations without one: ${error?.message}`);
      return 0; // the server is gone, with the last operations
    }
    run.end();
    return this.sessions.length;
  }

  close() {
    for (const session of this.sessions) session.close();
    sockets.reset(false);
  }
}

/** The part of `done` that every run has. */
function done(phase, run, { barriers, cpu, reconnects, renewed, heap }) {
  return {
    type: 'done',
    phase,
    operations: played(run.whole, (recorder) => recorder.message()),
    send_lag: run.lags?.encode() ?? null,
    max_in_flight: run.peak,
    queued: run.queued,
    unsent: run.unsent,
    reconnects,
    renewed,
    cpu_user_ns: cpu.user * 1000,
    cpu_system_ns: cpu.system * 1000,
    barriers,
    wrong_replies: run.callLog?.wrongReplies ?? [],
    heap,
  };
}

/** The recorders' counts, by the kinds that were played or due. */
function played(recorders, message) {
  const operations = {};
  recorders.forEach((recorder, kind) => {
    if (recorder.attempts > 0 || recorder.response?.sumNs > 0) operations[KINDS[kind]] = message(recorder);
  });
  return operations;
}

/** The share of a total for one of `parts` parts; endless without a total. */
function part(total, number, parts) {
  if (total === null) return Infinity;
  return Math.floor(total / parts) + (number < total % parts ? 1 : 0);
}
