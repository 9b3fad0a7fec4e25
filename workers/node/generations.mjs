// Generations: different values of a key, which show whose write a read has brought.

// The generations that a read may bring, by the generation in its record.
const RIGHT = [
  [0, 1, 2, 3],
  [1, 2, 3],
  [2, 1],
  [3, 1],
];

export const rightGenerations = (told) => RIGHT[told];

/** The offset in the pool of a key's value at a length, in a generation. */
export function offset(k, length, generation, poolBytes) {
  return (k * 786433 + length * 97 + generation * 262147) % (poolBytes - length + 1);
}

/** The generation in the first word of a record. */
export const generationOf = (word) => (word >>> 9) & 3;

/** Whether a record of a verb may have these flags, on a tape with generations for `lanes` lanes. */
export function mayHaveFlags(flags, facts, lanes) {
  const quiet = (flags & 1) === 1;
  const generation = flags >>> 1;
  if (quiet && !facts.quiet) return false;
  return generation === 0 || (generation < RIGHT.length && lanes > 0 && facts.generations);
}
