// memjs: the binary protocol, one connection to each server, keys spread by a hash modulo the servers.
//
// This file uses its callbacks, as its README does; its promises wrap them. It has no read of many
// keys, no `gets`, no `version` and no TCP_NODELAY: the worker sets TCP_NODELAY when the connection
// opens. In `common` it tries each operation once, by default twice. It has its own time-out, but it
// forgets calls that are outstanding when a server closes a connection: the worker gives them up as
// timeouts. `incr` and `decr` create a missing counter, unless the expiry time is the protocol's mark
// for "never": both profiles send it, so that a miss is a miss.

import memjs from 'memjs';

import { versionOf } from '../client.mjs';
import { CLIENT, CONNECTION, found, known, plain, PROTOCOL, refused, SERVER, TIMEOUT, written } from '../verify.mjs';

const CREATE_NOT = { expires: 0xffffffff };
const SILENT = { log() {} };
// The library's own serializer leaves values alone, too.
const RAW = {
  serialize: (_opcode, value, extras) => ({ value, extras }),
  deserialize: (_opcode, value, extras) => ({ value: plain(value, extras.readUInt32BE()), extras }),
};
const OPENING = 0; // the library's own numbers begin at 1
const FAULTS = [
  [/timed out/, TIMEOUT],
  [/Invalid arguments|non-numeric|Unknown command/, CLIENT],
  [/Value too large|Out of memory|Internal error|Busy|Temporary failure|Not supported/, SERVER],
  [/ECONN|EPIPE|ENOTFOUND|EAI_|EHOST|ENET|No servers available|socket/, CONNECTION],
];

export default {
  library: 'memjs',
  version: versionOf('memjs'),
  wires: ['binary'],
  features: ['threads', 'pipeline', 'shared', 'open_loop', 'cluster', 'login_sasl'],
  options: { hashing: ['default'] },
  giveUpAfterTimeouts: 2,
  make: (setup) => new Memjs(setup),
  failure,
};

class Memjs {
  constructor(setup) {
    if (setup === null) return;
    const seconds = setup.timeoutMs / 1000;
    const common = { timeout: seconds, conntimeout: seconds, retries: 1, logger: SILENT, serializer: RAW };
    const options = { ...(setup.common ? common : {}), ...setup.login };
    this.client = memjs.Client.create(setup.servers.join(','), options);
    this.expiries = new Map([...setup.tape.exptimes].map((expires) => [expires, { expires }]));
  }

  async open() {
    await Promise.all(this.client.servers.map((server) => connected(server)));
  }

  kinds() {
    const { client, expiries } = this;
    return {
      get: [(call) => client.get(call.key, call.callback), found],
      set: [(call) => client.set(call.key, call.value, expiries.get(call.exptimeS), call.callback), stored],
      add: [(call) => client.add(call.key, call.value, expiries.get(call.exptimeS), call.callback), stored],
      replace: [(call) => client.replace(call.key, call.value, expiries.get(call.exptimeS), call.callback), stored],
      delete: [(call) => client.delete(call.key, call.callback), known],
      touch: [(call) => client.touch(call.key, call.exptimeS, call.callback), known],
      incr: [(call) => client.increment(call.key, call.length, CREATE_NOT, call.callback), known],
      decr: [(call) => client.decrement(call.key, call.length, CREATE_NOT, call.callback), known],
    };
  }

  close() {
    this.client.close();
  }
}

const stored = (call, done) => (done ? written(call) : refused(call));

/** Make the library open a connection, without a command. */
function connected(server) {
  return new Promise((resolve, reject) => {
    server.onError(OPENING, reject);
    server.sock(false, resolve);
  }).finally(() => delete server.errorCallbacks[OPENING]);
}

function failure(error, call) {
  const text = `${error.code ?? ''} ${error.message ?? error}`;
  if (text.endsWith('Key not found')) return known(call, false);
  return FAULTS.find(([pattern]) => pattern.test(text))?.[1] ?? PROTOCOL;
}
