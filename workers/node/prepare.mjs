// The request `prepare`, and a client's refusals before the prefill.

import { readFileSync } from 'node:fs';

import { KINDS, SET } from './kinds.mjs';

/** A task that a client cannot do. */
export class Unsupported extends Error {}

/** A malformed request. */
export class BadRequest extends Error {}

/** The server cannot be reached. */
export class ConnectError extends Error {}

/** A call of the library does not return. */
export class LostCall extends Error {}

/** The request `prepare`, as client files read it. */
export class Prepare {
  constructor(request, tape) {
    this.tape = tape;
    this.servers = request.servers ?? [];
    this.wire = request.wire ?? 'text';
    this.threads = request.threads ?? 1;
    this.connections = request.connections ?? 1;
    this.depth = request.depth ?? 1;
    this.segment = request.segment ?? [0, 1];
    this.timeoutMs = request.timeout_ms ?? 1000;
    this.options = request.options ?? {};
    this.common = this.options.profile !== 'defaults';
    this.check();
    this.tls = tlsOf(this.options);
    this.login = loginOf(this.options);
    if (!this.playsAsMeant()) tape.anyGeneration = true;
  }

  /** After this number of calls a caller closes its connections and opens them again; 0: never. */
  get reconnectAfter() {
    return Number(this.options.reconnect_after ?? 0);
  }

  /** Whether operations of the tape have no reply. */
  get quiet() {
    return [...this.tape.kinds].some((kind) => kind % 2 === 1);
  }

  /** Whether the generations of the tape hold for this way to play it. */
  playsAsMeant() {
    // An operation without a reply, or outstanding with others, could be overtaken on its way.
    const inTurn = this.depth === 1 && !this.tape.kinds.has(SET + 1);
    const own = this.servers.length > 0 && this.connections <= this.threads;
    return inTurn && own && this.common && this.tape.lanes === this.segment[1] * this.threads;
  }

  check() {
    const [i, n] = this.segment;
    const counts = [this.threads, this.connections, this.depth, this.timeoutMs, n];
    const whole = counts.every((count) => Number.isSafeInteger(count) && count >= 1);
    if (!whole || !(i >= 0 && i < n)) throw new BadRequest('a number in prepare is out of its bounds');
    const wrong = this.servers.find((server) => !/^unix:\/.|:\d+$/.test(server));
    if (wrong !== undefined) throw new BadRequest(`${wrong}: an address is host:port or unix:/path`);
  }
}

const TLS_OPTIONS = ['tls', 'tls_name', 'tls_client_cert', 'tls_client_key'];

/** The options of Node's `tls.connect`; undefined without the option `tls`. */
function tlsOf({ tls, tls_name: servername, tls_client_cert: cert, tls_client_key: key }) {
  if (tls === undefined) return undefined;
  try {
    const named = servername === undefined ? {} : { servername };
    const own = cert === undefined ? {} : { cert: readFileSync(cert), key: readFileSync(key) };
    return { ca: readFileSync(tls), ...named, ...own };
  } catch (error) {
    throw new Unsupported(`option tls: ${error.message}`);
  }
}

/** User and password of the option `auth`, `USER:FILE`; undefined without it. */
function loginOf({ auth }) {
  if (auth === undefined) return undefined;
  const colon = auth.indexOf(':');
  try {
    const [password] = readFileSync(auth.slice(colon + 1), 'utf8').split(/\r?\n/);
    return { username: auth.slice(0, colon), password };
  } catch (error) {
    throw new Unsupported(`option auth: ${error.message}`);
  }
}

/** Refuse what a client cannot do. */
export function refuse(setup, client, kinds) {
  for (const [refused, reason] of refusals(setup, client, kinds)) {
    if (refused) throw new Unsupported(`${client.library}: ${reason}`);
  }
}

function* refusals(setup, client, kinds) {
  const { tape, servers, threads, connections } = setup;
  const inProcess = client.wires[0] === 'none';
  const missing = [...tape.kinds].map((kind) => KINDS[kind]).filter((kind) => !kinds.includes(kind));
  yield [missing.length > 0, `no ${missing.sort().join(', ')}`];
  yield [tape.thinks, 'no time to think between operations'];
  yield [!tape.readable, 'its keys are strings, and the tape has keys that are no UTF-8'];
  yield* optionRefusals(setup, client, inProcess);
  yield [!client.wires.includes(setup.wire), `no wire ${setup.wire}, only ${client.wires.join(', ')}`];
  yield [inProcess && servers.length > 0, 'a cache in the process has no servers'];
  yield [inProcess && setup.depth > 1, 'a call of it is over before the next one (depth 1)'];
  if (inProcess) return;
  yield [servers.length === 0, 'no server is named'];
  yield [servers.length > 1 && !client.features.includes('cluster'), 'one server only'];
  yield [servers.some((server) => /^unix:/.test(server)), 'no Unix sockets'];
  yield [servers.some((server) => /^\[/.test(server)), 'no IPv6 addresses in brackets'];
  yield [setup.depth > 1 && !client.features.includes('pipeline'), 'one operation at a time on a connection (depth 1)'];
  yield [connections < threads && !client.features.includes('shared'), 'a connection for each caller'];
  const uneven = connections % threads !== 0 && threads % connections !== 0;
  yield [uneven, 'connections that are neither a multiple of the callers nor a divisor of their number'];
}

function* optionRefusals({ options, depth, connections, threads }, client, inProcess) {
  const encrypts = client.features.includes('tls');
  const logsIn = client.features.includes('login_sasl');
  const known = { ...client.options, ...(inProcess ? {} : { profile: ['common', 'defaults'] }) };
  const listed = Object.entries(known).map(([name, values]) => `${name}=${values.join('|')}`);
  for (const [name, value] of Object.entries(options)) {
    if (encrypts && TLS_OPTIONS.includes(name)) continue;
    if (logsIn && name === 'auth') continue;
    if (name === 'reconnect_after' && !inProcess) {
      const whole = /^[1-9]\d{0,14}$/.test(value);
      yield [!whole, `option reconnect_after is a number from 1 on, not ${value}`];
      const own = depth === 1 && connections === threads;
      yield [!own, 'reconnect_after: a connection for each caller, and depth 1'];
      continue;
    }
    yield [!known[name]?.includes(value), `no option ${name}=${value}; it has ${listed.join(', ') || 'none'}`];
  }
}
