// null: no library. It measures the loop's own cost.
//
// It answers each read with the right value, and stores nothing: the keys of the prefill are always
// there, and no others.

import { CLIENT, OK, found, foundMany, known, refused, sent, swapped, written } from '../verify.mjs';

export default {
  library: 'none',
  version: '',
  wires: ['none'],
  features: ['threads', 'open_loop'],
  options: {},
  make: (setup) => new NullClient(setup),
  failure: () => CLIENT,
};

class NullClient {
  constructor(setup) {
    this.tape = setup?.tape;
    for (let k = 0; k < (this.tape?.prefilled ?? 0); k++) this.tape.own(k);
  }

  kinds() {
    const { tape } = this;
    const there = (k) => k < tape.prefilled;
    const value = (k) => (there(k) ? tape.own(k) : undefined);
    const read = [(call) => call.resolve(value(call.index)), found];
    const look = [(call) => call.resolve(there(call.index)), known];
    const done = [(call) => call.resolve(true), written];
    const storeIf = (wanted) => (call) => (there(call.index) === wanted ? written(call) : refused(call));
    const changed = (call) => (there(call.index) ? swapped(call, tape.own(call.index), true) : OK);
    return {
      get: read,
      gets: read,
      gat: read,
      mget: [(call) => call.resolve(true), (call) => foundMany(call, (_, i) => value(call.indexes[i]))],
      set: done,
      add: [(call) => call.resolve(true), storeIf(false)],
      replace: [(call) => call.resolve(true), storeIf(true)],
      delete: look,
      touch: look,
      incr: look,
      decr: look,
      cas: [(call) => call.resolve(true), changed],
      version: [(call) => call.resolve(true), sent],
    };
  }
}
