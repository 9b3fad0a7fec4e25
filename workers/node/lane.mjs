// A lane: one caller's share of the tape, record by record; and the call that carries a record.

import { generationOf } from './generations.mjs';
import { Groups } from './groups.mjs';
import { TIMEOUT } from './verify.mjs';
import { clock } from './window.mjs';
import { FACTS, SET } from './kinds.mjs';

/** A lane yields every record of its share of the groups, pass after pass. */
export class Lane {
  constructor(tape, place, lanes) {
    this.tape = tape;
    this.place = place;
    this.lanes = lanes;
    this.batches = new Map(); // the keys and indexes of each run, by its record
    this.values = new Map(); // values other than the prefill's to write, by record
    for (this.at = this.first; this.at < tape.opCount; this.advance()) this.makeReady(this.at);
  }

  get first() {
    return this.place * this.tape.group;
  }

  makeReady(j) {
    const { tape } = this;
    const [word, key, length] = tape.records.subarray(4 * j, 4 * j + 3);
    const facts = FACTS[word & 0xff];
    if (facts.batch) {
      const indexes = tape.runs.subarray(key, key + (word >>> 16));
      const keys = Array.from(indexes, (k) => tape.names[k]);
      const bytes = indexes.reduce((sum, k) => sum + tape.keySize(k), 0);
      this.batches.set(j, { indexes, keys, bytes });
    } else if (facts.writes) {
      const generation = generationOf(tape.records[4 * j]);
      const value = tape.value(key, length, generation);
      if (generation > 0 || length !== tape.lengths[key]) this.values.set(j, value);
    }
  }

  /** Go to the start of a phase. `limit`: the most records that it may yield. */
  begin(prefill, limit, startNs) {
    this.prefill = prefill;
    this.left = limit;
    this.passNs = startNs;
    const { group, times } = this.tape;
    this.groups = group > 1 && times === null && !prefill ? new Groups(group) : null;
    this.at = prefill ? this.place : this.first;
  }

  /** Whether a record is left; goes to the next pass at the end of one. */
  get more() {
    if (this.left <= 0) return false;
    if (this.prefill) return this.at < this.tape.prefilled;
    if (this.at < this.tape.opCount) return true;
    this.passNs += this.tape.periodNs;
    this.at = this.first;
    return this.at < this.tape.opCount; // there may be fewer groups than lanes
  }

  /** The instant at which the next record is due. */
  get dueNs() {
    return this.passNs + this.tape.times[this.at];
  }

  advance() {
    if (this.prefill) {
      this.at += this.lanes;
      return;
    }
    this.at += 1;
    if (this.at % this.tape.group === 0) this.at += (this.lanes - 1) * this.tape.group;
  }

  /** Put the next record, which must exist, into a call. */
  fill(call) {
    this.left -= 1;
    call.group = this.groups === null ? null : this.groups.take();
    call.record = this.at;
    if (this.prefill) this.fillKey(call, this.at);
    else this.fillRecord(call, this.at);
    this.advance();
  }

  fillKey(call, k) {
    const { tape } = this;
    call.kind = SET;
    call.generation = 0;
    call.index = k;
    call.key = tape.names[k];
    call.keyCount = 1;
    call.keyBytes = tape.keySize(k);
    call.value = tape.own(k);
    call.length = call.value.length;
    call.exptimeS = tape.exptimeS;
  }

  fillRecord(call, j) {
    const { tape } = this;
    const { records } = tape;
    const at = 4 * j;
    const word = records[at];
    const facts = FACTS[word & 0xff];
    call.read(records, at);
    if (facts.batch) {
      const { keys, indexes, bytes } = this.batches.get(j);
      call.keys = keys;
      call.indexes = indexes;
      call.keyCount = keys.length;
      call.keyBytes = bytes;
      return;
    }
    const k = (call.index = records[at + 1]);
    call.keyCount = facts.keyless ? 0 : 1;
    call.keyBytes = facts.keyless ? 0 : tape.keySize(k);
    call.key = tape.names[k];
    const own = call.generation === 0 && call.length === tape.lengths[k];
    if (facts.writes) call.value = own ? tape.own(k) : this.values.get(j);
  }
}

/** One call of the library at a time. Calls are reused, so that nothing is allocated. */
export class Call {
  constructor(lane, session) {
    this.lane = lane;
    this.tape = lane.tape;
    this.session = session;
    this.run = null;
    // The record, for the client file.
    this.kind = this.record = this.index = this.length = this.exptimeS = this.keyCount = this.keyBytes = 0;
    this.generation = 0; // see generations.mjs
    this.group = null; // see groups.mjs
    this.key = '';
    this.value = this.keys = this.indexes = null;
    // The result, from the function that verifies.
    this.hits = this.notStored = this.bytes = 0;
    this.wrong = null; // the value that was read, if it is wrong
    this.dueNs = this.beganNs = 0;
    this.fromNs = this.endNs = this.halfEndNs = this.halfOps = 0; // see slices.mjs
    this.out = this.waiting = false;
    // The functions by which a library answers: a promise's two ends, or a Node callback.
    this.resolve = (answer) => this.end(answer, undefined);
    this.reject = (error) => this.end(undefined, error ?? new Error('no reason'));
    this.callback = (error, answer) => (error ? this.end(answer, error) : this.end(answer, undefined));
    this.resume = () => this.run.resume(this);
  }

  /** The fields of the record that begins at `at`. */
  read(records, at) {
    const word = records[at];
    this.kind = ((word & 0xff) << 1) | ((word >>> 8) & 1);
    this.length = records[at + 2];
    this.exptimeS = records[at + 3];
    this.generation = generationOf(word);
  }

  /** Make the call. Afterwards `out` says whether its answer is outstanding. */
  begin() {
    const { run } = this;
    this.out = true;
    this.waiting = false;
    run.active += 1;
    if (run.active > run.peak) run.peak = run.active;
    this.beganNs = clock();
    try {
      this.session.calls[this.kind](this);
    } catch (error) {
      this.end(undefined, error);
    }
    this.waiting = this.out;
  }

  end(answer, error) {
    if (!this.out) return; // given up, or answered twice
    const now = clock();
    this.hits = this.notStored = this.bytes = 0;
    const { session } = this;
    let fault;
    try {
      fault = error === undefined ? session.verifiers[this.kind](this, answer) : session.failure(error, this);
    } catch (mistake) {
      this.run.abort(mistake);
      return;
    }
    this.close(now, fault);
  }

  /** Record the call, and go on. */
  close(now, fault) {
    const { run, waiting } = this;
    this.out = this.waiting = false;
    run.active -= 1;
    run.note(this, now, fault);
    if (waiting) run.free(this, now);
  }

  /** A time-out for a library that has none: a later answer is ignored. */
  giveUp() {
    const next = new this.constructor(this.lane, this.session);
    next.run = this.run;
    this.out = false;
    Object.assign(next, { out: true, waiting: true, beganNs: this.beganNs, dueNs: this.dueNs });
    Object.assign(next, { fromNs: this.fromNs, endNs: this.endNs });
    Object.assign(next, { group: this.group, kind: this.kind, record: this.record });
    Object.assign(next, { keyCount: this.keyCount, keyBytes: this.keyBytes });
    next.hits = next.notStored = next.bytes = 0;
    next.close(clock(), TIMEOUT);
    return next;
  }
}
