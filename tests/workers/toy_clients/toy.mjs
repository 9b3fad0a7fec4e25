// toy: a socket and no library. The text protocol, `get` and `set`.

import net from 'node:net';

import { faultOf, found, written } from '../verify.mjs';

const END = Buffer.from('\r\n');

export default {
  library: 'none',
  version: '1',
  wires: ['text'],
  features: ['threads', 'pipeline', 'shared', 'open_loop'],
  options: {},
  giveUpAfterTimeouts: 1,
  make: (setup) => new Toy(setup),
  failure: (error) => faultOf(error),
};

class Toy {
  constructor(setup) {
    if (setup === null) return; // only its kinds are asked for
    const [, host, port] = /^(.*):(\d+)$/.exec(setup.servers[0]);
    this.address = { host, port: Number(port), noDelay: true };
    this.socket = null;
  }

  open() {
    return new Promise((resolve, reject) => this.connect(resolve, reject));
  }

  connect(opened, failed) {
    const socket = net.connect(this.address, opened);
    this.socket = socket;
    this.waiting = [];
    this.data = Buffer.alloc(0);
    socket.on('data', (data) => this.take(data));
    socket.on('error', (error) => failed?.(error));
    socket.on('close', () => this.lost(socket));
  }

  lost(socket) {
    if (socket !== this.socket) return;
    this.socket = null; // the next call opens another one
    for (const call of this.waiting) call.reject(new Error('the connection was closed'));
  }

  send(call, ...parts) {
    if (this.socket === null) this.connect();
    this.waiting.push(call);
    for (const part of parts) this.socket.write(part);
  }

  take(data) {
    this.data = Buffer.concat([this.data, data]);
    for (let end; (end = this.data.indexOf(END)) >= 0; ) {
      const line = this.data.toString('latin1', 0, end);
      const size = line.startsWith('VALUE ') ? Number(line.split(' ')[3]) : -1;
      const used = end + 2 + (size < 0 ? 0 : size + 7); // the value, a line's end, END and a line's end
      if (this.data.length < used) return;
      const value = size < 0 ? undefined : this.data.subarray(end + 2, end + 2 + size);
      this.data = this.data.subarray(used);
      const call = this.waiting.shift();
      if (/ERROR/.test(line)) call.reject(new Error(line));
      else call.resolve(value);
    }
  }

  kinds() {
    return {
      get: [(call) => this.get(call), verified],
      set: [(call) => this.set(call), written],
    };
  }

  get(call) {
    // in a call: undefined.length;
    this.send(call, `get ${call.key}\r\n`);
  }

  set(call) {
    this.send(call, `set ${call.key} 0 ${call.exptimeS} ${call.value.length}\r\n`, call.value, END);
  }

  close() {
    this.socket?.destroy();
  }
}

function verified(call, value) {
  // in verification: undefined.length;
  return found(call, value);
}
