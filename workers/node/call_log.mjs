// The call log of docs/call-log.md: a record of each call, written after the run.

import { writeFileSync } from 'node:fs';
import { KINDS } from './kinds.mjs';
import { OK, WRONG_VALUE } from './verify.mjs';
import { clock } from './window.mjs';

const RECORD_BYTES = 32;
const MOST_RECORDS = 1 << 20;
const FIRST_RECORDS = 1 << 14;
const MOST_WRONG_REPLIES = 16;
const MOST_WRONG_BYTES = 4096;
const MISS = 1;
const READS = new Set(['get', 'gets', 'mget', 'gat']);

/** The calls of a run. */
class CallLog {
  constructor(path) {
    this.path = path;
    this.count = 0;
    this.records = Buffer.alloc(FIRST_RECORDS * RECORD_BYTES);
    // Node's clock counts from another instant than the kernel's.
    this.offsetNs = process.hrtime.bigint() - BigInt(Math.round(clock()));
    this.wrongReplies = [];
  }

  note(call, now, fault) {
    if (this.count === MOST_RECORDS) return;
    const at = this.count * RECORD_BYTES;
    if (at === this.records.length) this.records = Buffer.concat([this.records, Buffer.alloc(at)]);
    const { records } = this;
    const beganNs = Math.round(call.beganNs);
    records.writeBigUInt64LE(BigInt(beganNs) + this.offsetNs, at);
    records.writeBigUInt64LE(BigInt(Math.max(0, Math.round(now) - beganNs)), at + 8);
    records.writeUInt32LE(call.record, at + 16);
    records.writeUInt32LE(fault === OK ? call.bytes : 0, at + 20);
    records.writeUInt16LE(call.lane.place & 0xffff, at + 24);
    records.writeUInt8(outcome(call, fault), at + 26);
    this.count += 1;
    if (fault === WRONG_VALUE && this.wrongReplies.length < MOST_WRONG_REPLIES) {
      const value = Buffer.isBuffer(call.wrong) ? call.wrong : Buffer.from(String(call.wrong), 'latin1');
      this.wrongReplies.push({ record: call.record, value: value.subarray(0, MOST_WRONG_BYTES).toString('base64') });
    }
  }

  write() {
    const header = Buffer.from('CMCALLS\0\0\0\0\0\0\0\0\0', 'latin1');
    header.writeUInt32LE(1, 8);
    header.writeUInt32LE(RECORD_BYTES, 12);
    writeFileSync(this.path, Buffer.concat([header, this.records.subarray(0, this.count * RECORD_BYTES)]));
  }
}

/** The call log of a run; null if the run asks for none. */
export const callLogTo = (path) => (path ? new CallLog(path) : null);

/** The outcomes of failures have the order of the faults. */
function outcome(call, fault) {
  if (fault !== OK) return fault + 1;
  return READS.has(KINDS[call.kind]) && call.hits === 0 ? MISS : OK;
}
