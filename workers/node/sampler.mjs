// Samples of a run's functions by V8's profiler, the one behind `--cpu-prof`, for `cachemark why --profile`.

import { writeFileSync } from 'node:fs';
import { promisify } from 'node:util';

const INTERVAL_US = 500;
const HERE = new URL('.', import.meta.url).href;
const IDLE = new Set(['(idle)', '(root)']);

/** Play a run, and sample a measured one if CACHEMARK_PROFILE names a file for its stacks. */
export async function sampled(request, play) {
  const path = process.env.CACHEMARK_PROFILE;
  if (!path || request.phase !== 'measure') return play();
  // Import late: each worker loads this file, but few sample.
  const { Session } = await import('node:inspector');
  const session = new Session();
  session.connect();
  const post = promisify(session.post.bind(session));
  await post('Profiler.enable');
  await post('Profiler.setSamplingInterval', { interval: INTERVAL_US });
  await post('Profiler.start');
  try {
    return await play();
  } finally {
    const { profile } = await post('Profiler.stop');
    session.disconnect();
    writeFileSync(path, foldedStacks(profile));
  }
}

/** A line for each stack: its functions from the outermost on, and its count. */
export function foldedStacks({ nodes }) {
  const byId = new Map(nodes.map((node) => [node.id, { ...node, parent: null }]));
  for (const { id, children = [] } of nodes) for (const child of children) byId.get(child).parent = byId.get(id);
  const lines = [`# sampler: V8's profiler of Node.js ${process.version}`];
  for (const node of byId.values()) {
    if (!node.hitCount || IDLE.has(node.callFrame.functionName)) continue;
    const frames = [];
    for (let at = node; at.parent !== null; at = at.parent) frames.unshift(frame(at.callFrame));
    lines.push(`${frames.join(';')} ${node.hitCount}`);
  }
  return `${lines.join('\n')}\n`;
}

function frame({ functionName, url, lineNumber }) {
  const name = (functionName || '(anonymous)').replaceAll(';', ',');
  if (!url) return name;
  const file = url.startsWith(HERE) ? `cachemark/${url.slice(HERE.length)}` : url;
  return `${name} (${file.replace(/^.*\/node_modules\//, '')}:${lineNumber + 1})`;
}
