// HdrHistogram: counts times, and encodes histograms.

import { deflateSync, inflateSync } from 'node:zlib';

import hdr from 'hdr-histogram-js';

const BOUNDS = { lowestDiscernibleValue: 1, highestTrackableValue: 100e9, numberOfSignificantValueDigits: 3 };
const LINEAR = 2048; // up to here HdrHistogram counts each ns at 3 digits
const HALF_BITS = 10; // and above in steps, 1024 of them to each doubling
const LARGE = 2 ** 32;
const COOKIE = 0x1c849314;

/** Times in HdrHistogram's own buckets. A record costs an addition; the library computes a logarithm. */
export class Histogram {
  constructor() {
    this.counts = new Float64Array(LINEAR + 21 * 2 ** HALF_BITS);
    this.large = []; // from 4.3 s on
    this.sumNs = 0;
  }

  note(ns) {
    this.sumNs += ns;
    if (ns >= LARGE - 1) {
      this.large.push(Math.min(Math.round(ns), BOUNDS.highestTrackableValue));
      return;
    }
    const value = (ns + 0.5) >>> 0;
    if (value < LINEAR) {
      this.counts[value || 1] += 1;
      return;
    }
    const shift = 21 - Math.clz32(value);
    this.counts[(shift << HALF_BITS) + (value >>> shift)] += 1;
  }

  add(other) {
    other.counts.forEach((count, i) => (this.counts[i] += count));
    this.large.push(...other.large);
    this.sumNs += other.sumNs;
  }

  /** Its text for messages; null if it is empty. */
  encode() {
    const made = hdr.build({ ...BOUNDS, bitBucketSize: 64 });
    this.counts.forEach((count, i) => {
      if (count > 0) made.recordValueWithCount(valueOf(i), count);
    });
    for (const ns of this.large) made.recordValue(ns);
    return made.totalCount === 0 ? null : readable(hdr.encodeIntoCompressedBase64(made));
  }
}

function valueOf(i) {
  if (i < LINEAR) return i;
  const shift = (i >>> HALF_BITS) - 1;
  return (i - (shift << HALF_BITS)) * 2 ** shift;
}

/**
 * The same histogram with two fields of its header corrected: the library writes a normalising offset
 * of 1 instead of 0, and as ratio the integer 1 instead of 1.0; some decoders refuse both.
 */
function readable(blob) {
  const plain = inflateSync(Buffer.from(blob, 'base64').subarray(8));
  plain.writeInt32BE(0, 8);
  plain.writeDoubleBE(1, 32);
  const packed = deflateSync(plain);
  const head = Buffer.alloc(8);
  head.writeUInt32BE(COOKIE, 0);
  head.writeUInt32BE(packed.length, 4);
  return Buffer.concat([head, packed]).toString('base64');
}
