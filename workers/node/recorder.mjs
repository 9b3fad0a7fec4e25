// The records of one kind of operation: counts and times.

import { Histogram } from './histogram.mjs';
import { KINDS, LOOKUPS } from './kinds.mjs';
import { ERRORS, OK, TIMEOUT, WRONG_VALUE } from './verify.mjs';

const FIGURES = ['attempts', 'ok', 'hits', 'notStored', 'wrong', 'keys', 'bytes', 'keyBytes', 'busyNs'];

/** The counts of one kind. */
export class Recorder {
  constructor(kind, open) {
    this.kind = kind;
    this.attempts = this.ok = this.hits = this.notStored = this.wrong = 0;
    this.keys = this.bytes = this.keyBytes = this.busyNs = 0;
    this.errors = new Float64Array(ERRORS.length);
    this.service = new Histogram();
    this.response = open ? new Histogram() : null;
  }

  note(call, tookNs, lagNs, fault) {
    this.attempts += 1;
    if (fault === OK) {
      this.ok += 1;
      this.hits += call.hits;
      this.notStored += call.notStored;
      this.keys += call.keyCount;
      this.keyBytes += call.keyBytes;
      this.bytes += call.bytes;
      this.busyNs += tookNs;
    } else if (fault === WRONG_VALUE) {
      this.wrong += 1;
      return;
    } else {
      this.errors[fault] += 1;
      call.tape.anyGeneration = true; // if it was a write, it may still arrive
      if (fault !== TIMEOUT) return; // a timeout counts with its duration
    }
    this.service.note(tookNs);
    if (this.response !== null) this.response.note(lagNs + tookNs);
  }

  /** Response times: in a closed loop they are the same samples as the service's. */
  get responses() {
    return this.response ?? this.service;
  }

  add(other) {
    for (const figure of FIGURES) this[figure] += other[figure];
    other.errors.forEach((count, fault) => (this.errors[fault] += count));
    this.service.add(other.service);
    if (this.response !== null) this.response.add(other.response);
  }

  get failures() {
    return this.attempts - this.ok;
  }

  /** Its message. */
  message() {
    const service = this.service.encode();
    return { ...this.counts(), service, response: this.response === null ? service : this.response.encode() };
  }

  /** The same without times. */
  counts() {
    const errors = {};
    this.errors.forEach((count, fault) => {
      if (count > 0) errors[ERRORS[fault]] = count;
    });
    return {
      attempts: this.attempts,
      ok: this.ok,
      hits: this.hits,
      misses: LOOKUPS.has(KINDS[this.kind]) ? this.keys - this.hits : 0,
      not_stored: this.notStored,
      wrong_values: this.wrong,
      errors,
      keys: this.keys,
      value_bytes: this.bytes,
      key_bytes: this.keyBytes,
      busy_ns: Math.round(this.busyNs),
    };
  }
}
