// Loads and uses a client file; README.md says what the file must contain.

import { readFileSync } from 'node:fs';

import { KINDS } from './kinds.mjs';
import { Unsupported } from './prepare.mjs';
import { within } from './window.mjs';

const CONNECT_MS = 5000; // beyond every time-out
const FOLDER = new URL('.', import.meta.url).href;

/** The version of a package, as its own package.json says. */
export function versionOf(name) {
  const file = new URL(`node_modules/${name}/package.json`, import.meta.url);
  return JSON.parse(readFileSync(file, 'utf8')).version;
}

/** The exports of a client file. Throws Unsupported if a package is missing. */
export async function loadClient(name) {
  try {
    return (await import(`./clients/${name}.mjs`)).default;
  } catch (error) {
    const missing = error.code === 'ERR_MODULE_NOT_FOUND' && /^Cannot find package/.test(error.message);
    if (!missing) throw error;
    const refusal = new Unsupported(`${name} is not installed: ${error.message.split('\n')[0]}`);
    refusal.remedy = 'cachemark setup node';
    throw refusal;
  }
}

/** Whether an error is a mistake in this folder's code, and not a failure of the library. */
export function isOwnError(error) {
  const mistake = [TypeError, ReferenceError, RangeError, SyntaxError].some((kind) => error instanceof kind);
  if (!mistake) return false;
  const origin =
    String(error.stack)
      .split('\n')
      .find((line) => /^\s+at /.test(line)) ?? '';
  return origin.includes(FOLDER) && !origin.includes('node_modules');
}

/** One session of the library, with a connection to each server: its calls and verifiers by kind. */
export class Session {
  constructor(client, setup) {
    this.setup = setup;
    /** After this number of time-outs the worker gives up a call; in the profile `defaults` it never does. */
    this.giveUpAfterTimeouts = setup.common ? (client.giveUpAfterTimeouts ?? Infinity) : Infinity;
    this.client = client;
    this.calls = [];
    this.verifiers = [];
    /** Calls since it was opened, the times that it was renewed, and the barriers of these. */
    this.callsMade = this.renewed = this.barriers = 0;
    this.make();
  }

  make() {
    this.made = this.client.make(this.setup);
    const kinds = this.made.kinds();
    KINDS.forEach((name, kind) => {
      [this.calls[kind], this.verifiers[kind]] = kinds[name] ?? [];
    });
  }

  /** The fault kind of an error of a call. An error of this worker's own code is thrown again. */
  failure(error, call) {
    if (isOwnError(error)) throw error;
    return this.client.failure(error, call);
  }

  /** Connect; the promise is rejected after a time limit. */
  connect() {
    return within(2 * this.setup.timeoutMs + CONNECT_MS, this.made.open?.(), 'no connection, and no error either');
  }

  /** Close its connections, and open others. */
  async renew() {
    if (this.setup.quiet) {
      await this.barrier(); // operations without a reply must arrive first
      this.barriers += 1;
    }
    this.close();
    this.make();
    await this.connect();
    this.callsMade = 0;
    this.renewed += 1;
  }

  async barrier() {
    await this.made.barrier?.();
  }

  close() {
    try {
      this.made.close?.();
    } catch (error) {
      console.error(`close: ${error.message}`);
    }
  }
}
