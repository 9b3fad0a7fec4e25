// memcached (3rd-Eden's): the text protocol, a pool of connections to each server, keys spread by a
// ketama ring. In `common` a pool has one connection, on which many calls can be outstanding.
//
// It cannot send raw bytes. It sends and returns strings as UTF-8, so only a Buffer survives: it sends
// the Buffer's bytes, read as Latin-1, in UTF-8, with a backslash before each line end and flags 4.
// Random bytes grow by half on the wire, and it refuses values that are then above 1 MiB.
//
// It has no time-out for an operation, and never answers calls that are outstanding when a connection
// closes: in `common` the worker gives both up as timeouts. It reports a SERVER_ERROR as a plain
// `false`, as it reports a missing key; but only the error has an `issue` before it. After an issue or
// a lost connection, it leaves the server alone for 30 s and refuses every call meanwhile.

import Memcached from 'memcached';

import { versionOf } from '../client.mjs';
import {
  CLIENT,
  faultOf,
  OK,
  found,
  foundMany,
  known,
  PROTOCOL,
  refused,
  SERVER,
  sent,
  swapped,
  written,
} from '../verify.mjs';

export default {
  library: 'memcached',
  version: versionOf('memcached'),
  wires: ['text'],
  features: ['threads', 'pipeline', 'shared', 'open_loop', 'cluster'],
  options: { hashing: ['default', 'ketama'] },
  giveUpAfterTimeouts: 1,
  make: (setup) => new Client(setup),
  failure,
};

class Client {
  constructor(setup) {
    this.issue = false;
    if (setup === null) return;
    const common = { poolSize: 1, retries: 0, timeout: setup.timeoutMs };
    this.client = new Memcached(setup.servers, setup.common ? common : {});
    const noted = this.client.connectionIssue;
    this.client.connectionIssue = (...details) => {
      this.issue = true;
      queueMicrotask(() => (this.issue = false)); // the callback follows at once
      return noted.apply(this.client, details);
    };
  }

  async open() {
    const { client } = this;
    const connected = (server) =>
      new Promise((resolve, reject) => client.connect(server, (error) => (error ? reject(error) : resolve())));
    await Promise.all(client.servers.map(connected));
  }

  kinds() {
    const { client } = this;
    const answered = (verify) => (call, answer) => (this.issue ? SERVER : verify(call, answer));
    return {
      get: [(call) => client.get(call.key, call.callback), answered(found)],
      gets: [
        (call) => client.gets(call.key, call.callback),
        answered((call, answer) => found(call, answer?.[call.key])),
      ],
      mget: [(call) => client.getMulti(call.keys, call.callback), answered(foundAll)],
      set: [(call) => client.set(call.key, call.value, call.exptimeS, call.callback), answered(written)],
      add: [(call) => client.add(call.key, call.value, call.exptimeS, call.callback), answered(written)],
      replace: [(call) => client.replace(call.key, call.value, call.exptimeS, call.callback), answered(written)],
      delete: [(call) => client.del(call.key, call.callback), answered(known)],
      touch: [(call) => client.touch(call.key, call.exptimeS, call.callback), answered(known)],
      incr: [(call) => client.incr(call.key, call.length, call.callback), answered(counted)],
      decr: [(call) => client.decr(call.key, call.length, call.callback), answered(counted)],
      cas: [(call) => this.swap(call), answered(changed)],
      version: [(call) => client.version(call.callback), answered(sent)],
    };
  }

  /** Change a value as programs do: read it with its token, then write with the token. */
  swap(call) {
    const { key, value, exptimeS, callback } = call;
    this.client.gets(key, (error, read) => {
      if (error || !read) callback(error, read);
      else this.client.cas(key, value, read.cas, exptimeS, (refusal, done) => callback(refusal, [read[key], done]));
    });
  }

  close() {
    this.client.end();
  }
}

const foundAll = (call, values) => foundMany(call, (key) => values[key]);
const counted = (call, number) => known(call, number !== false);
const changed = (call, answer) => (answer ? swapped(call, ...answer) : OK);

function failure(errors, call) {
  const error = Array.isArray(errors) ? errors[0] : errors;
  if (error?.notStored) return refused(call);
  const fault = faultOf(error);
  // For a CLIENT_ERROR it returns only the rest of the line.
  return fault === PROTOCOL && !/^Unknown response/.test(error?.message) ? CLIENT : fault;
}
