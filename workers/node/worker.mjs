// The worker for memcached clients and in-process caches in Node.js: `node worker.mjs CLIENT`.
//
//   worker.mjs   requests in, answers out       lane.mjs        a caller's share of the tape; a call
//   prepare.mjs  the request `prepare`        lane_loops.mjs  the measured loops
//   client.mjs   how a client file is used      verify.mjs      the result of a reply
//   player.mjs   one prepared trial             recorder.mjs, groups.mjs  what is recorded
//   tape.mjs     the tape, checked              histogram.mjs   HdrHistogram
//   kinds.mjs    the kinds of operation         timeline.mjs    the window in slices and sections
//   sockets.mjs  the connections                window.mjs      when a run begins and ends
//   run.mjs      what the loops share           slices.mjs      the tape played in short turns
//   heap.mjs, sampler.mjs  what a run collects  renewal.mjs     connections that are opened again as asked
//   clients/     one file for each library      README.md       what a client file must contain
//
// A caller is a lane. All lanes run on one event loop, as in a Node program. Each has its own
// connection, unless the request asks for fewer.

import { readdirSync, writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { Console } from 'node:console';

import { isOwnError, loadClient } from './client.mjs';
import { KINDS } from './kinds.mjs';
import { BadRequest, ConnectError, LostCall, refuse, Prepare, Unsupported } from './prepare.mjs';
import { sampled } from './sampler.mjs';
import { Tape, TapeError } from './tape.mjs';

const PROGRESS_MS = 1000;

const send = (message) => writeSync(1, `${JSON.stringify(message)}\n`);
const failure = (kind, text, definite = true) => ({ type: 'error', kind, text, definite });

class Worker {
  constructor(name) {
    this.name = name;
    this.player = null;
    this.requests = Promise.resolve();
    this.pendingRun = null; // the last requested run or slice, begun or not
  }

  /** Answer one request after the other; only a stop overtakes. */
  take(line) {
    let request;
    try {
      request = JSON.parse(line);
      if (typeof request?.type !== 'string') throw new Error('it has no type');
    } catch {
      send(failure('protocol', `not a request: ${line.slice(0, 120)}`));
      return;
    }
    if (request.type === 'run' || request.type === 'slice') this.pendingRun = request;
    if (request.type === 'stop' || request.type === 'bye') this.stop();
    this.requests = this.requests.then(() => this.answer(request));
  }

  stop() {
    if (this.pendingRun) this.pendingRun.stop = true;
    const run = this.player?.run;
    if (!run) return;
    run.window.stop();
    run.stopped();
  }

  async answer(request) {
    if (request.type === 'bye') process.exit(0);
    const doing = {
      hello: this.hello,
      prepare: this.prepare,
      run: this.run,
      begin_slices: this.beginSlices,
      slice: this.slice,
      end_slices: this.endSlices,
    }[request.type];
    if (doing === undefined) return;
    try {
      send(await doing.call(this, request));
    } catch (error) {
      send(this.answerTo(error));
    }
  }

  answerTo(error) {
    if (error instanceof Unsupported) return { type: 'unsupported', reason: error.message, remedy: error.remedy ?? '' };
    if (error instanceof TapeError || error?.syscall === 'open') return failure('tape', error.message);
    if (error instanceof BadRequest) return failure('protocol', error.message);
    if (error instanceof ConnectError) return failure('connect', error.message);
    if (error instanceof LostCall) {
      this.player = null;
      return failure('client', error.message, false);
    }
    console.error(error);
    this.player = null; // it cannot play on
    return failure('internal', error?.stack?.split('\n').slice(0, 2).join(' ') ?? String(error));
  }

  async load() {
    if (this.client) return;
    const client = await loadClient(this.name);
    this.Player = (await import('./player.mjs')).Player;
    const offered = client.make(null).kinds();
    this.client = client;
    this.kinds = KINDS.filter((kind) => kind in offered);
  }

  async hello() {
    await this.load();
    const { library, version, wires, features } = this.client;
    return {
      type: 'ready',
      protocol: 2,
      client: `node/${this.name}`,
      library,
      library_version: version,
      language: 'node',
      runtime: `Node.js ${process.version}, V8 ${process.versions.v8}`,
      capabilities: [...wires, ...features, 'timeline', 'slices', 'groups', 'calls', ...this.kinds],
    };
  }

  /** Read the tape, refuse what the client cannot do, and connect. */
  async prepare(request) {
    await this.load();
    this.player?.close();
    this.player = null;
    const setup = new Prepare(request, new Tape(request.tape));
    refuse(setup, this.client, this.kinds);
    const player = new this.Player(this.client, setup);
    try {
      await player.open();
    } catch (error) {
      player.close();
      throw error;
    }
    this.player = player;
    return { type: 'ready' };
  }

  /** Play a phase, and send progress each second. */
  async run(request) {
    const { player } = this;
    if (player === null) {
      this.pendingRun = null;
      return failure('protocol', 'run before prepare');
    }
    const run = player.begin(request);
    if (request.stop) run.window.stop();
    const progress = setInterval(() => send({ type: 'progress', ...run.progress }), PROGRESS_MS);
    try {
      return await sampled(request, () => player.play(request.phase));
    } finally {
      clearInterval(progress);
      if (this.pendingRun === request) this.pendingRun = null;
    }
  }

  /** Collect garbage and allocate memory now, and not between slices. */
  beginSlices() {
    if (this.player === null) return failure('protocol', 'begin_slices before prepare');
    this.player.beginSlices();
    return { type: 'ready' };
  }

  async slice(request) {
    try {
      const slices = this.player?.slices;
      if (!slices) return failure('protocol', 'slice before begin_slices');
      const run = this.player.beginSlice(request);
      if (request.stop) run.window.stop();
      return await slices.play();
    } finally {
      if (this.pendingRun === request) this.pendingRun = null;
    }
  }

  endSlices() {
    if (!this.player?.slices) return failure('protocol', 'end_slices before begin_slices');
    return this.player.endSlices();
  }

  /** An exception of the library that no caller can catch ends the run, as it would end a program. */
  thrown(error) {
    console.error(error);
    const run = this.player?.run;
    if (isOwnError(error)) run?.abort(error);
    else run?.fail(new LostCall(`the library threw where no caller can catch it: ${error?.message ?? error}`));
  }
}

function main() {
  const files = readdirSync(new URL('clients/', import.meta.url));
  const names = files.filter((file) => file.endsWith('.mjs')).map((file) => file.slice(0, -4));
  const [name] = process.argv.slice(2);
  if (process.argv.length !== 3 || !names.includes(name)) {
    console.error(`worker.mjs CLIENT: one of ${names.sort().join(', ')}`);
    process.exit(2);
  }
  // stdout is for the protocol only, even if a library prints.
  globalThis.console = new Console(process.stderr, process.stderr);
  Object.defineProperty(process, 'stdout', { get: () => process.stderr });
  const worker = new Worker(name);
  process.on('uncaughtException', (error) => worker.thrown(error));
  const lines = createInterface({ input: process.stdin });
  lines.on('line', (line) => worker.take(line));
  lines.on('close', () => {
    if (worker.pendingRun) process.exit(0); // the orchestrator is gone
    worker.requests.then(() => process.exit(0));
  });
}

main();
