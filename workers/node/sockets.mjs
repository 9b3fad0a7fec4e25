// Sees every TCP connection of a library in Node itself, without the library's help.

import { subscribe } from 'node:diagnostics_channel';

/** Counts connections, sets TCP_NODELAY on request, and closes all connections of an earlier trial. */
class Sockets {
  constructor() {
    this.noDelay = false;
    this.opened = 0;
    this.alive = new Set();
    subscribe('net.client.socket', ({ socket }) => this.watch(socket));
  }

  watch(socket) {
    if (this.noDelay) socket.setNoDelay(true);
    this.alive.add(socket);
    socket.once('connect', () => (this.opened += 1));
    socket.once('close', () => this.alive.delete(socket));
  }

  /** Begin anew. */
  reset(noDelay) {
    for (const socket of this.alive) socket.destroy();
    this.noDelay = noDelay;
  }
}

export const sockets = new Sockets();
