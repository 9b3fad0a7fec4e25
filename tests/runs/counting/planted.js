// Changes of memjs, one of them at a time: the environment variable PLANTED names it.

const { readSync, statSync } = require('node:fs');
const net = require('node:net');

const NAME = process.env.PLANTED || '';
const OPAQUE = 0x7fffffff;
const NOOP = Buffer.alloc(24);
NOOP.writeUInt8(0x80, 0);
NOOP.writeUInt8(0x0a, 1);
NOOP.writeUInt32BE(OPAQUE, 12);
const MINUTE_MS = 60_000;
const LOCK = new Int32Array(new SharedArrayBuffer(4));
const SHORT_MS = 0.05;

/** Send a request, and do a little more. */
module.exports = (server, socket, data) => {
  const send = () => socket.write(data);
  switch (NAME) {
    case 'a connection':
      net.connect(server.port, server.host, function close() { this.end(); });
      return send();
    case 'another request':
      server.onResponse(OPAQUE, send);
      server.requestTimeouts.push(Date.now() + MINUTE_MS); // its reply takes one away
      return socket.write(NOOP);
    case 'Nagle':
      socket.setNoDelay(false);
      return inTwo(socket, data);
    case 'two writes':
      return inTwo(socket, data);
    case 'options':
      socket._handle.setNoDelay(true);
      return send();
    case 'a file':
      statSync('/');
      return send();
    case 'an empty read':
      readNothing(socket._handle.fd);
      return send();
    case 'a lock':
      for (let i = 0; i < 5; i++) Atomics.wait(LOCK, 0, 0, SHORT_MS);
      return send();
    case 'other calls':
      for (let i = 0; i < 3; i++) server.parent = process.ppid;
      return send();
    default:
      if (NAME === 'a slow key check') checkKey(data);
      return send();
  }
};

function inTwo(socket, data) {
  socket.write(data.subarray(0, 3));
  return socket.write(data.subarray(3));
}

function readNothing(file) {
  try {
    readSync(file, Buffer.alloc(1));
  } catch (error) {
    if (error.code !== 'EAGAIN') throw error;
  }
}

function checkKey(data) {
  for (let i = 0; i < 100_000; i++) if (data[i % data.length] === -1) throw new Error('no byte');
}
