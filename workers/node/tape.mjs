// The tape: its tables, checked before they are trusted, and its values.

import { isUtf8 } from 'node:buffer';
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { endianness } from 'node:os';

import { mayHaveFlags, offset, rightGenerations } from './generations.mjs';
import { FACTS } from './kinds.mjs';

const VERSION = 2;
const HEADER_BYTES = 184;
const COUNTER = '1000000000'; // the stored text of each counter
// biome-ignore format: a table
const FIELDS = [
  'fileBytes', 'seed', 'keyCount', 'prefilled', 'opCount', 'runCount', 'poolBytes', 'periodNs', 'offsetsAt',
  'keysAt', 'keyBytes', 'lengthsAt', 'poolAt', 'opsAt', 'runsAt', 'timesAt', 'exptimeS', 'flags', 'group',
  'counters', 'thinksAt',
];

/** A file that is no tape; the text names the failed check and its place. */
export class TapeError extends Error {}

function check(holds, what, at) {
  if (!holds) throw new TapeError(`the tape has ${what} (at byte ${at})`);
}

function readWhole(path) {
  const file = openSync(path, 'r');
  try {
    const facts = fstatSync(file);
    check(facts.isFile() && facts.size >= HEADER_BYTES, `no header of ${HEADER_BYTES} bytes`, 0);
    const data = Buffer.from(new ArrayBuffer(facts.size)); // a table must begin at a multiple of 8
    for (let have = 0; have < data.length; ) {
      const count = readSync(file, data.subarray(have));
      check(count > 0, 'another length than it says', have);
      have += count;
    }
    return data;
  } finally {
    closeSync(file);
  }
}

/** A tape read whole. */
export class Tape {
  constructor(path) {
    this.data = readWhole(path);
    this.readHeader();
    const { keyCount } = this;
    this.offsets = this.table(Uint32Array, 'offsetsAt', keyCount + 1);
    this.text = this.table(Uint8Array, 'keysAt', this.keyBytes);
    this.lengths = this.table(Uint32Array, 'lengthsAt', keyCount);
    this.pool = Buffer.from(this.table(Uint8Array, 'poolAt', this.poolBytes).buffer, this.poolAt, this.poolBytes);
    this.runs = this.table(Uint32Array, 'runsAt', this.runCount);
    /** Four words for each record: verb, flags and run; key; length; expiry time. */
    this.records = this.table(Uint32Array, 'opsAt', 4 * this.opCount);
    this.readKeys();
    this.checkRecords();
    this.readTimes();
    /** Whether callers think between operations. */
    this.thinks = this.thinksAt > 0;
    if (this.thinks) this.table(Uint32Array, 'thinksAt', 2 * this.opCount);
    this.stored = new Array(keyCount); // each key's value at its own length, once requested
  }

  readHeader() {
    const { data } = this;
    check(endianness() === 'LE', 'little-endian numbers, this machine not', 0);
    check(data.toString('latin1', 0, 8) === 'CMTAPE\0\0', 'no magic', 0);
    check(data.readUInt32LE(8) === VERSION, `another version than ${VERSION}`, 8);
    check(data.readUInt32LE(12) === HEADER_BYTES, 'a header of another length', 12);
    FIELDS.forEach((name, i) => {
      const value = Number(data.readBigUInt64LE(16 + 8 * i));
      check(name === 'seed' || value <= Number.MAX_SAFE_INTEGER, 'a number beyond all bounds', 16 + 8 * i);
      this[name] = value;
    });
    check(this.fileBytes === data.length, 'another length than it says', 16);
    check(this.keyCount > 0 && this.keyCount < 2 ** 32, 'no possible number of keys', 32);
    check(this.prefilled <= this.keyCount, 'more keys to store than it has', 40);
    check(this.opCount > 0, 'no operations', 48);
    check(this.exptimeS < 2 ** 32, 'no possible expiry time', 144);
    check((this.flags & 0xfffffffe) === 0, 'unknown flags', 152);
    check(this.group > 0 && this.opCount % this.group === 0, 'records that are no whole number of groups', 160);
    check(this.counters <= this.keyCount, 'more counters than keys', 168);
    check(this.timesAt > 0 === this.periodNs > 0, 'times without a period, or a period without times', 72);
    check(this.timesAt === 0 || this.thinksAt === 0, 'both times and think times', 176);
    this.firstCounter = this.keyCount - this.counters;
    this.verified = (this.flags & 1) === 0;
    this.lanes = Math.floor(this.flags / 2 ** 32); // number of lanes that the generations are for; 0: there are none
    this.anyGeneration = false; // whether a read may bring any generation: a failed write may still arrive
  }

  /** The numbers of a section, which begins where the header's `field` says. */
  table(Type, field, count) {
    const at = this[field];
    const size = count * Type.BYTES_PER_ELEMENT;
    const inside = at >= HEADER_BYTES && at % 8 === 0 && at + size <= this.data.length;
    check(inside, 'a section outside the file', 16 + 8 * FIELDS.indexOf(field));
    return new Type(this.data.buffer, at, count);
  }

  readKeys() {
    const { keyCount, offsets, lengths } = this;
    for (let k = 0; k < keyCount; k++) {
      const size = offsets[k + 1] - offsets[k];
      check(size > 0 && size <= 250, 'a key of a wrong length', this.offsetsAt + 4 * k);
      check(lengths[k] <= this.poolBytes, 'a length beyond the pool', this.lengthsAt + 4 * k);
      const counter = k >= this.firstCounter && lengths[k] !== COUNTER.length;
      check(!counter, 'a counter of another length', this.lengthsAt + 4 * k);
    }
    check(offsets[keyCount] <= this.keyBytes, 'a key outside its table', this.offsetsAt + 4 * keyCount);
    const dirty = this.text.findIndex((byte) => byte <= 0x20 || byte === 0x7f);
    check(dirty < 0, 'a key with white space or a control character', this.keysAt + dirty);
    const stray = this.runs.findIndex((k) => k >= keyCount);
    check(stray < 0, 'a run of unknown keys', this.runsAt + 4 * stray);
    const all = Buffer.from(this.text.buffer, this.keysAt, this.keyBytes);
    this.readable = isUtf8(all); // the libraries take keys as strings
    this.names = Array.from({ length: keyCount }, (_, k) => all.toString('utf8', offsets[k], offsets[k + 1]));
  }

  /** Also collect the kinds on the tape, its expiry times, and whether each key has one length. */
  checkRecords() {
    const { records, runs } = this;
    this.kinds = new Set();
    this.exptimes = new Set([this.exptimeS]);
    this.fixed = true;
    for (let j = 0; j < this.opCount; j++) {
      const [word, key, length, exptimeS] = records.subarray(4 * j, 4 * j + 4);
      const verb = word & 0xff;
      const flags = (word >>> 8) & 0xff;
      const run = word >>> 16;
      const at = this.opsAt + 16 * j;
      const facts = FACTS[verb];
      check(facts, `an unknown verb ${verb}`, at);
      check(mayHaveFlags(flags, facts, this.lanes), 'bad flags', at);
      check(run === (facts.keyless ? 0 : 1) || (run > 1 && facts.batch), 'a wrong run', at);
      const limit = facts.batch ? this.runCount : this.keyCount;
      check(facts.keyless || key + run <= limit, 'an unknown key', at);
      check(facts.valueless || length <= this.poolBytes, 'a length beyond the pool', at);
      for (let i = 0; i < run; i++) {
        const counter = (facts.batch ? runs[key + i] : key) >= this.firstCounter;
        check(counter || !facts.step, "a counter's verb on another key", at);
        check(!counter || facts.onCounters, 'another verb on a counter', at);
      }
      if (facts.writes && !facts.batch) this.fixed &&= length === this.lengths[key];
      if (facts.writes) this.exptimes.add(exptimeS);
      this.kinds.add(2 * verb + (flags & 1));
    }
  }

  readTimes() {
    this.times = null;
    if (this.timesAt === 0) return;
    const halves = this.table(Uint32Array, 'timesAt', 2 * this.opCount);
    this.times = new Float64Array(this.opCount);
    for (let j = 0; j < this.opCount; j++) {
      this.times[j] = halves[2 * j] + halves[2 * j + 1] * 2 ** 32;
      const later = (j === 0 || this.times[j] >= this.times[j - 1]) && this.times[j] < this.periodNs;
      check(later, 'times out of order', this.timesAt + 8 * j);
    }
  }

  /** The offset in the pool of a key's value at a length, in a generation. */
  begin(k, length, generation) {
    return offset(k, length, generation, this.poolBytes);
  }

  /** The value of a key at a length, in a generation. */
  value(k, length, generation) {
    if (generation === 0 && length === this.lengths[k]) return this.own(k);
    const at = this.begin(k, length, generation);
    return this.pool.subarray(at, at + length);
  }

  /** The value of a key at its own length: always the same Buffer. */
  own(k) {
    return (this.stored[k] ??= this.cut(k));
  }

  cut(k) {
    if (k >= this.firstCounter) return Buffer.from(COUNTER);
    const at = this.begin(k, this.lengths[k], 0);
    return this.pool.subarray(at, at + this.lengths[k]);
  }

  /** Whether a read may bring a value; `told` is the generation in the read's record. */
  right(k, value, told) {
    if ((told === 0 && value === this.stored[k]) || !this.verified) return true;
    if (!Buffer.isBuffer(value) || value.length > this.poolBytes) return false;
    if (this.fixed && value.length !== this.lengths[k]) return false;
    return this.is(k, value, told) || (this.lanes > 0 && this.allowed(k, value, told));
  }

  is(k, value, generation) {
    const at = this.begin(k, value.length, generation);
    return value.compare(this.pool, at, at + value.length) === 0;
  }

  allowed(k, value, told) {
    return rightGenerations(this.anyGeneration ? 0 : told).some((generation) => this.is(k, value, generation));
  }

  keySize(k) {
    return this.offsets[k + 1] - this.offsets[k];
  }
}
