// What is installed of a library, as its own package says.

import { readFileSync } from 'node:fs';

export function versionOf(name) {
  const file = new URL(`node_modules/${name}/package.json`, import.meta.url);
  return JSON.parse(readFileSync(file, 'utf8')).version;
}
