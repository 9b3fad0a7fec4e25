// lru-cache, in the worker's own process: one cache that all callers share, with room for every key of
// the tape: it evicts nothing, but keeps its order.
//
// It keeps references to values, and returns the same references. A read of many keys is a loop of
// single reads; `add` and `replace` look first, and no other call can come between.

import { LRUCache } from 'lru-cache';

import { versionOf } from '../client.mjs';
import { CLIENT, found, foundMany, known, refused, written } from '../verify.mjs';

export default {
  library: 'lru-cache',
  version: versionOf('lru-cache'),
  wires: ['none'],
  features: ['threads', 'open_loop'],
  options: {},
  make: (setup) => new Cache(setup),
  failure: () => CLIENT,
};

class Cache {
  constructor(setup) {
    if (setup === null) return;
    this.cache = new LRUCache({ max: setup.tape.keyCount });
    const ttl = (exptimeS) => (exptimeS > 0 ? { ttl: exptimeS * 1000 } : undefined);
    this.expiries = new Map([...setup.tape.exptimes].map((exptimeS) => [exptimeS, ttl(exptimeS)]));
  }

  kinds() {
    const { cache, expiries } = this;
    const set = (call) => cache.set(call.key, call.value, expiries.get(call.exptimeS));
    const storeIf = (wanted) => (call) => {
      const fits = cache.has(call.key) === wanted;
      if (fits) set(call);
      call.resolve(fits);
    };
    return {
      get: [(call) => call.resolve(cache.get(call.key)), found],
      mget: [(call) => call.resolve(call.keys.map((key) => cache.get(key))), foundAll],
      set: [(call) => call.resolve(set(call)), written],
      add: [storeIf(false), stored],
      replace: [storeIf(true), stored],
      delete: [(call) => call.resolve(cache.delete(call.key)), known],
    };
  }

  close() {
    this.cache.clear();
  }
}

const foundAll = (call, values) => foundMany(call, (_, i) => values[i]);
const stored = (call, done) => (done ? written(call) : refused(call));
