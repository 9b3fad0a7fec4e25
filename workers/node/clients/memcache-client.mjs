// memcache-client (Electrode's): the text protocol, promises, one connection by default. It treats
// several servers as copies of each other, so it gets only one.
//
// It marks bytes with flags 8. In `common` a packer that leaves bytes alone replaces its own, and
// TCP_NODELAY is on; by default it is off. The library checks time-outs at intervals of a quarter of
// the time-out, at least 50 ms, so a call may take that much longer.

import { MemcacheClient } from 'memcache-client';

import { versionOf } from '../client.mjs';
import { faultOf, OK, found, foundMany, known, plain, refused, sent, swapped, written } from '../verify.mjs';

const RAW = { pack: (data) => ({ flag: 0, data }), unpack: ({ data, flag }) => plain(data, flag) };
const QUIET = { noreply: true };

export default {
  library: 'memcache-client',
  version: versionOf('memcache-client'),
  wires: ['text'],
  features: ['threads', 'pipeline', 'shared', 'open_loop', 'tls'],
  options: {},
  make: (setup) => new Client(setup),
  failure,
};

class Client {
  constructor(setup) {
    if (setup === null) return;
    const [server] = setup.servers;
    const { timeoutMs } = setup;
    const tls = setup.tls === undefined ? {} : { tls: setup.tls };
    const common = { cmdTimeout: timeoutMs, connectTimeout: timeoutMs, noDelay: true };
    this.client = new MemcacheClient({ server: { server }, ...tls, ...(setup.common ? common : {}) });
    if (setup.common) this.client._packer = RAW;
    const options = (more) => new Map([...setup.tape.exptimes].map((lifetime) => [lifetime, { lifetime, ...more }]));
    this.answered = options({});
    this.quiet = options(QUIET);
  }

  open() {
    return this.client.version();
  }

  barrier() {
    return this.client.version();
  }

  kinds() {
    const { client, answered, quiet } = this;
    const then = (promise, call) => promise.then(call.resolve, call.reject);
    const store = (verb, options) => (call) =>
      then(client[verb](call.key, call.value, options.get(call.exptimeS)), call);
    return {
      get: [(call) => then(client.get(call.key), call), foundOne],
      gets: [(call) => then(client.gets(call.key), call), foundOne],
      mget: [(call) => then(client.get(call.keys), call), foundAll],
      set: [store('set', answered), written],
      add: [store('add', answered), written],
      replace: [store('replace', answered), written],
      delete: [(call) => then(client.delete(call.key), call), there],
      touch: [(call) => then(client.touch(call.key, call.exptimeS), call), there],
      incr: [(call) => then(client.incr(call.key, call.length), call), there],
      decr: [(call) => then(client.decr(call.key, call.length), call), there],
      cas: [(call) => then(this.swap(call), call), changed],
      version: [(call) => then(client.version(), call), sent],
      set_noreply: [store('set', quiet), written],
      add_noreply: [store('add', quiet), written],
      replace_noreply: [store('replace', quiet), written],
      delete_noreply: [(call) => then(client.delete(call.key, QUIET), call), sent],
      touch_noreply: [(call) => then(client.touch(call.key, call.exptimeS, QUIET), call), sent],
      incr_noreply: [(call) => then(client.incr(call.key, call.length, QUIET), call), sent],
      decr_noreply: [(call) => then(client.decr(call.key, call.length, QUIET), call), sent],
    };
  }

  /** Change a value as programs do: read it with its token, then write with the token. */
  async swap({ key, value, exptimeS: lifetime }) {
    const read = await this.client.gets(key);
    if (read === undefined) return undefined;
    try {
      await this.client.cas(key, value, { lifetime, casUniq: read.casUniq });
      return [read.value, true];
    } catch (error) {
      if (error.message === 'EXISTS' || error.message === 'NOT_FOUND') return [read.value, false];
      throw error;
    }
  }

  close() {
    this.client.shutdown();
  }
}

const foundOne = (call, read) => found(call, read?.value);
const foundAll = (call, reads) => foundMany(call, (key) => reads[key]?.value);
const there = (call) => known(call, true);
const changed = (call, answer) => (answer ? swapped(call, ...answer) : OK);

function failure(error, call) {
  if (error.message === 'NOT_FOUND') return known(call, false);
  if (error.message === 'NOT_STORED') return refused(call);
  return faultOf(error);
}
