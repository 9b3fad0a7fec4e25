// Generations: the values of a key that show which write a read has brought.

// By the generation that the record of a read tells: those that it may bring.
const RIGHT = [
  [0, 1, 2, 3],
  [1, 2, 3],
  [2, 1],
  [3, 1],
];

export const rightGenerations = (told) => RIGHT[told];

/** Where the value of a key at a length begins in the pool, in a generation. */
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
