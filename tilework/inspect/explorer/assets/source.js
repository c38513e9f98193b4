// The source: the functions that code comes from, the user's own first; beside each line what it costs and what was said about it.
const METRICS = [["instructions", "instructions"], ["sectors", "memory sectors"], ["turns", "shared turns"], ["conflicts", "bank conflicts"]];

function sourceFiles(kernel) {
  // the files that this kernel's code comes from
  const used = new Set();
  for (const stage of kernel.stages) for (const row of stage.rows) for (const key of keysOf(row)) used.add(fileOf(key));
  const first = kernel.stages.flatMap((stage) => stage.rows).map((row) => keysOf(row).at(-1)).find((key) => key !== undefined);
  const own = first === undefined ? -1 : fileOf(first);
  return [...used].sort((a, b) => DOC.files[a].library - DOC.files[b].library || (b === own) - (a === own) || a - b);
}

const counted = ({ programs, of }) => (programs === of ? plural(of, "program") : `the first ${programs} of ${of} programs`);

function countsByLine(kernel) {
  const found = new Map();
  for (const [place, numbers] of kernel.counters.lines ?? []) {
    const [key] = KEYS[place];
    if (key !== undefined) found.set(key, numbers);
  }
  return found;
}

function remarksByLine(kernel) {
  const found = new Map();
  for (const remark of kernel.remarks) {
    const [key] = KEYS[remark.place];
    if (key !== undefined) found.set(key, [...(found.get(key) ?? []), remark]);
  }
  return found;
}

class SourceView {
  constructor(app) {
    this.app = app;
    this.metric = "instructions";
    this.code = new CodeView({ language: "python", label: "source", isSource: true });
    this.title = el("span", { class: "title" });
    this.select = el("select", { "aria-label": "counter beside the lines", onchange: () => { this.metric = this.select.value; this.show(this.kernel); } },
      METRICS.map(([name, words]) => el("option", { value: name }, words)));
    this.node = el("section", { class: "pane", id: "source", "aria-label": "source" },
      el("div", { class: "head" }, this.title, el("span", { class: "grow" }), this.select), el("div", { class: "body" }, this.code.node));
  }

  show(kernel) {
    this.kernel = kernel;
    const files = sourceFiles(kernel);
    const counts = countsByLine(kernel);
    const remarks = remarksByLine(kernel);
    this.select.hidden = !counts.size;
    this.select.title = counts.size ? `counted by the emulator, ${counted(kernel.counters)}` : "";
    this.title.textContent = files.length ? DOC.files[files[0]].label : "source";
    this.title.title = files.length ? DOC.files[files[0]].path : "";
    const most = Math.max(1, ...[...counts.values()].map((numbers) => numbers[this.metric]));
    const lines = [];
    const linked = new Set(kernel.stages.flatMap((stage) => stage.rows.flatMap(keysOf)));
    for (const file of files) {
      const { label, library, parts, path } = DOC.files[file];
      const ordered = [...parts].sort((a, b) => (b.name === kernel.name) - (a.name === kernel.name) || a.first - b.first);
      for (const part of ordered.filter(({ first, lines: some }) => some.some((_, index) => linked.has(keyOf(file, first + index))))) {
        const where = library ? `${label}, of tilework` : label;
        lines.push({ text: `  ${where}${part.name ? ` · ${part.name}` : ""}`, keys: [], kind: "file" });
        let quoted = false; // whether a text in three quotes goes on
        part.lines.forEach((string, index) => {
          const text = DOC.strings[string];
          const quotes = text.split('"""').length - 1;
          const language = quoted ? "string" : undefined;
          quoted = quoted !== (quotes % 2 === 1);
          const key = keyOf(file, part.first + index);
          lines.push({ text, language: language ?? (quoted ? "string" : undefined), keys: linked.has(key) ? [key] : [], number: part.first + index, extra: this.beside(key, counts, most, remarks.get(key)) });
        });
      }
      if (!parts.length) lines.push({ text: `  ${path} cannot be read`, keys: [], kind: "file" });
    }
    this.code.show(lines);
  }

  beside(key, counts, most, remarks) {
    const value = counts.get(key)?.[this.metric] ?? 0;
    const heat = counts.size ? `<span class="heat">${value ? `<i style="width:${Math.max(4, (100 * value) / most)}%"></i><span>${short(value)}</span>` : ""}</span>` : "";
    const words = (remarks ?? []).map((remark) => remark.text).join("\n\n");
    const flag = this.kernel.remarks.length ? `<span class="flag"${words ? ` data-tip="${escaped(words).replace(/"/g, "&quot;")}"` : ""}>${words ? "●" : ""}</span>` : "";
    return heat + flag;
  }
}
