// The result of a library's answer: a fault; the call gets the keys found and the bytes read or written.

export const OK = 0;
export const WRONG_VALUE = 1;
export const TIMEOUT = 2;
export const CONNECTION = 3;
export const SERVER = 4;
export const CLIENT = 5;
export const PROTOCOL = 6;

/** The errors' names in `done`; OK and WRONG_VALUE are not among them. */
export const ERRORS = [, , 'timeout', 'connection', 'server', 'client', 'protocol'];

// The value of an item with other flags than 0: it equals no value of the tape.
const OTHER_FLAGS = Buffer.from('other flags than 0');

/** A value that was read, if its flags are 0, as in all items of cachemark. */
export const plain = (value, flags) => (flags === 0 ? value : OTHER_FLAGS);

/** A read of one key: the value, or null or undefined for a miss. */
export function found(call, value) {
  if (value === null || value === undefined) return OK;
  if (!call.tape.right(call.index, value, call.generation)) {
    call.wrong = value;
    return WRONG_VALUE;
  }
  call.hits = 1;
  call.bytes = value.length;
  return OK;
}

/** A read of many keys: `look` returns the value of one. The record has the generation of the first key. */
export function foundMany(call, look) {
  const { keys, indexes, tape } = call;
  let hits = 0;
  let bytes = 0;
  for (let i = 0; i < keys.length; i++) {
    const value = look(keys[i], i);
    if (value === null || value === undefined) continue;
    if (!tape.right(indexes[i], value, i === 0 ? call.generation : 0)) return WRONG_VALUE;
    hits += 1;
    bytes += value.length;
  }
  call.hits = hits;
  call.bytes = bytes;
  return OK;
}

/** A write that was done. */
export function written(call) {
  call.bytes = call.length;
  return OK;
}

/** A write that was refused, which is an answer. */
export function refused(call) {
  call.notStored = 1;
  return written(call);
}

/** A `delete`, `touch`, `incr` or `decr`: whether there was such a key. */
export function known(call, there) {
  call.hits = there ? 1 : 0;
  return OK;
}

/** A `cas` whose `gets` brought a value, and whether its own was stored. */
export function swapped(call, value, stored) {
  if (!call.tape.right(call.index, value, 0)) return WRONG_VALUE;
  call.hits = 1;
  return stored ? written(call) : refused(call);
}

/** An answer without keys and bytes: `version`, a miss. */
export const sent = () => OK;

/** The fault of a server's reply, which a library returns as text, or of an error of Node. */
export function faultOf(error) {
  const text = `${error?.code ?? ''} ${error?.message ?? error}`;
  if (/ETIMEDOUT|timed? ?out/i.test(text)) return TIMEOUT;
  if (/\bE[A-Z]{4,}\b|socket|connect|not available|readyState/i.test(text) && !/ERROR\b/.test(text)) return CONNECTION;
  if (/SERVER_ERROR/.test(text)) return SERVER;
  if (/ERROR/.test(text)) return CLIENT;
  return PROTOCOL;
}
