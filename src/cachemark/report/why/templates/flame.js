// Draws one of the page's profiles as a flame graph, or the difference between two.
(() => {
  const { profiles, classes } = JSON.parse(document.getElementById('profiles').textContent);
  const [choice, other, find, head, legend, under] = ['profile', 'other', 'find', 'head', 'legend', 'under'].map((id) => document.getElementById(id));
  const names = [...new Set(Object.values(classes))].sort();
  const colours = new Map(names.map((name, n) => [name, `hsl(${Math.round((360 * n) / names.length)} 65% 68%)`]));

  const samples = (profile) => Object.values(profile.stacks).reduce((sum, count) => sum + count, 0);

  /** Add a profile's stacks to a tree; each node has the share of the samples, in percent, in its place in `field`. */
  function grow(root, profile, field) {
    const all = samples(profile);
    for (const [stack, count] of Object.entries(profile.stacks)) {
      let node = root;
      for (const name of stack.split(';')) {
        node[field] += (100 * count) / all;
        node.byName ??= new Map();
        if (!node.byName.has(name)) node.byName.set(name, { name, value: 0, base: 0 });
        node = node.byName.get(name);
      }
      node[field] += (100 * count) / all;
    }
  }

  function withChildren(node) {
    const children = [...(node.byName?.values() ?? [])].map(withChildren);
    return { name: node.name, value: node.value, base: node.base, children };
  }

  const percent = (value) => `${value.toFixed(1)} %`;

  function said({ data }, compared) {
    const known = classes[data.name] ? ` · ${classes[data.name]}` : '';
    const before = compared ? ` (${percent(data.base)} in the other)` : '';
    return `${data.name}${known}: ${percent(data.value)}${before}`;
  }

  /** Red for what has a larger share than in the other profile, blue for a smaller one. */
  function grown({ value, base }) {
    const part = Math.min(1, Math.abs(value - base) / Math.max(value, base, 1e-9));
    const light = Math.round(96 - 40 * part);
    return value > base ? `hsl(5 85% ${light}%)` : `hsl(220 85% ${light}%)`;
  }

  function draw() {
    const profile = profiles[choice.value];
    const compared = other.value === '' ? null : profiles[other.value];
    const root = { name: profile.client, value: 0, base: 0 };
    grow(root, profile, 'value');
    if (compared) grow(root, compared, 'base');
    const place = document.getElementById('flames');
    place.replaceChildren();
    const chart = flamegraph()
      .width(Math.max(600, place.clientWidth))
      .inverted(false)
      .sort(true)
      .minFrameSize(1)
      .transitionDuration(0)
      .selfValue(false)
      .onHover((node) => { under.textContent = said(node, compared); })
      .setColorMapper((node) => {
        if (node.highlight) return '#e600e6';
        return compared ? grown(node.data) : (colours.get(classes[node.data.name]) ?? '#ddd');
      })
      .setLabelHandler((node) => said(node, compared));
    window.d3.select(place).datum(withChildren(root)).call(chart);
    find.oninput = () => (find.value ? chart.search(find.value) : chart.clear());
    head.textContent = `${profile.kind} of ${profile.client}: ${samples(profile)} samples by ${profile.sampler}`;
    tell(compared);
  }

  /** The legend. */
  function tell(compared) {
    legend.replaceChildren();
    if (compared) return;
    for (const [name, colour] of colours) {
      const entry = legend.appendChild(document.createElement('span'));
      entry.appendChild(document.createElement('i')).style.background = colour;
      entry.append(name || 'as the function that called');
    }
  }

  profiles.forEach(({ client, kind }, n) => {
    for (const list of [choice, other]) list.add(new Option(`${kind}: ${client}`, n));
  });
  choice.onchange = draw;
  other.onchange = draw;
  draw();
})();
