// Collections of V8 in a run. It counts no allocations, and buffers are not on its heap.

import v8 from 'node:v8';

/** Begin to count, before a run. Null if V8 cannot (before Node.js 18.15). */
export function heapProfiler() {
  if (v8.GCProfiler === undefined) return null;
  const profiler = new v8.GCProfiler();
  profiler.start();
  return profiler;
}

/** The collections since then, which are over in `cost` µs each. */
export function heapMessage(profiler) {
  if (profiler === null) return null;
  const { statistics } = profiler.stop();
  const us = statistics.reduce((sum, { cost }) => sum + cost, 0);
  return { collections: statistics.length, collection_ns: Math.round(us * 1000) };
}
