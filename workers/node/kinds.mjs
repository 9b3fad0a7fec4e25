// The kinds of operation: a verb of the tape, with or without a reply.

// biome-ignore format: a table
const VERBS = {
  1: 'get', 2: 'gets', 3: 'mget', 4: 'set', 5: 'add', 6: 'replace', 7: 'delete', 8: 'touch', 9: 'gat',
  10: 'version', 11: 'mset', 14: 'cas', 15: 'incr', 16: 'decr',
};
const QUIET = new Set(['set', 'add', 'replace', 'delete', 'touch', 'mset', 'incr', 'decr']);
const BATCHES = new Set(['mget', 'mset']);
const WRITES = new Set(['set', 'add', 'replace', 'cas', 'mset']);
const STEPS = new Set(['incr', 'decr']);
const ON_COUNTERS = new Set(['incr', 'decr', 'delete', 'version']);
const WITH_GENERATIONS = new Set(['set', 'get', 'gets', 'gat', 'mget']);
const VALUELESS = new Set(['incr', 'decr', 'delete', 'touch', 'version']);

/** The facts of a verb, by its number on the tape; only the native client plays 12, 13, 17 and 20. */
export const FACTS = [];
for (const [number, name] of Object.entries(VERBS)) {
  FACTS[number] = {
    name,
    quiet: QUIET.has(name),
    batch: BATCHES.has(name),
    writes: WRITES.has(name),
    step: STEPS.has(name),
    onCounters: ON_COUNTERS.has(name),
    valueless: VALUELESS.has(name),
    keyless: name === 'version',
    generations: WITH_GENERATIONS.has(name),
  };
}

/** The names of all kinds; a kind's number is twice its verb's, plus 1 without a reply. */
export const KINDS = [];
FACTS.forEach((facts, verb) => {
  KINDS[2 * verb] = facts.name;
  if (facts.quiet) KINDS[2 * verb + 1] = `${facts.name}_noreply`;
});

export const SET = 2 * 4;
export const LOOKUPS = new Set(['get', 'gets', 'mget', 'gat', 'delete', 'touch', 'incr', 'decr', 'cas']);
