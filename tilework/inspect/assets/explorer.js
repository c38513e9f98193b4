// The source: the functions that code comes from, the user's own first; beside each line what it costs and what was said about it.
function sourceFiles(kernel) {
  // the files that this kernel's code comes from
  const used = new Set();
  for (const stage of kernel.stages) for (const row of stage.rows) for (const key of keysOf(row)) used.add(fileOf(key));
  const first = kernel.stages.flatMap((stage) => stage.rows).map((row) => keysOf(row).at(-1)).find((key) => key !== undefined);
  const own = first === undefined ? -1 : fileOf(first);
  return [...used].sort((a, b) => DOC.files[a].library - DOC.files[b].library || (b === own) - (a === own) || a - b);
}

const counted = ({ programs, of }) => (of === undefined ? "for all programs" : programs === of ? plural(of, "program") : `the first ${programs} of ${of} programs`);

function countsByLine(kernel) {
  const found = new Map();
  for (const [location, numbers] of kernel.counters.lines ?? []) {
    const [key] = KEYS[location];
    if (key !== undefined) found.set(key, numbers);
  }
  return found;
}

function remarksByLine(kernel) {
  const found = new Map();
  for (const remark of kernel.remarks) {
    const [key] = KEYS[remark.location];
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
);
    this.node = el("section", { class: "pane", id: "source", "aria-label": "source" },
      el("div", { class: "head" }, this.title, el("span", { class: "grow" }), this.select), el("div", { class: "body" }, this.code.node));
  }

  show(kernel) {
    this.kernel = kernel;
    const files = sourceFiles(kernel);
    const counts = countsByLine(kernel);
    const remarks = remarksByLine(kernel);
    const metrics = (kernel.counters.columns ?? []).filter(([name]) => name !== "coalescing");
    if (metrics.length && !metrics.some(([name]) => name === this.metric)) this.metric = metrics[0][0];
    this.select.replaceChildren(...metrics.map(([name, words]) => el("option", { value: name, selected: name === this.metric }, words)));
    this.select.hidden = !counts.size;
    this.select.title = counts.size ? `counted by ${kernel.counters.by}, ${counted(kernel.counters)}` : "";
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
// Every pass: how long it took, what it changed.
const RUNS = { make_ttir: "TTIR", make_ttgir: "TTIR → TTGIR", make_ttcir: "TTIR → TTCIR", make_llir: "before LLVM", remarks: "looking for remarks" };

class PassesView {
  constructor(app, kernel) {
    Object.assign(this, { app, kernel, whole: false });
    this.passes = app.passes(kernel);
    this.buttons = [];
    this.list = el("nav", { class: "list", "aria-label": "passes" });
    this.code = new CodeView({ language: "mlir", label: "what the pass changed", onType: (type, line) => app.showLayout(type, line) });
    this.tools = el("div", { class: "tools" });
    this.node = el("div", { class: "split" }, this.list, el("div", { class: "detail" }, this.tools, this.code.node));
    const slowest = Math.max(0.001, ...this.passes.steps.map((step) => step.ms));
    let run = null;
    for (const step of this.passes.steps) {
      if (step.run !== run) {
        run = step.run;
        const total = run.steps.reduce((sum, one) => sum + one.ms, 0);
        this.list.append(el("h3", {}, el("span", {}, RUNS[run.tag] ?? run.tag), el("span", {}, time(total))));
      }
      const { added, removed } = changes(this.passes.before(step), step.edits);
      const same = !added && !removed;
      const button = el("button", { class: same ? "same" : "", title: step.name, onclick: () => this.show(step.number) },
        el("span", { class: "name" }, step.name.replace(/\{.*/s, "")),
        same ? null : el("span", { class: "delta" }, el("b", {}, `+${added}`), " ", el("s", {}, `−${removed}`)),
        el("span", { class: "ms" }, time(step.ms)),
        el("i", { class: "time", style: `width:${(100 * step.ms) / slowest}%` }));
      button.dataset.pass = step.name;
      this.buttons.push(button);
      this.list.append(button);
    }
    this.list.addEventListener("keydown", (event) => {
      const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!move) return;
      event.preventDefault();
      this.show(Math.max(0, Math.min(this.buttons.length - 1, this.chosen + move)));
      this.buttons[this.chosen].focus();
    });
    const first = this.passes.steps.findIndex((step) => step.edits.length);
    if (this.passes.steps.length) this.show(Math.max(0, first));
    else this.node = el("div", { class: "note" }, "No pass ran: the file is past them.");
  }

  show(number, keep = false) {
    this.chosen = number;
    this.buttons.forEach((button, index) => button.setAttribute("aria-current", String(index === number)));
    this.buttons[number].scrollIntoView({ block: "nearest" });
    const step = this.passes.steps[number];
    const before = this.passes.before(step);
    const diff = diffLines(before, step.edits);
    const changed = diff.some((line) => line.sign !== " ");
    fill(this.tools,
      el("strong", {}, step.name), el("span", {}, time(step.ms)),
      changed ? null : el("span", { class: "faint" }, "changed nothing"),
      el("span", { class: "grow" }),
      el("label", {}, el("input", { type: "checkbox", checked: this.whole, onchange: (event) => { this.whole = event.target.checked; this.show(number); } }), "whole text"));
    const after = this.passes.after(step);
    this.code.show(foldedDiff(diff, this.whole || !changed, () => { this.whole = true; this.show(number, true); }), aliasesOf(after), this.app.types(this.kernel));
    if (!keep) this.code.node.scrollTop = 0;
    if (this.whole && changed) this.code.scrollTo(diff.findIndex((line) => line.sign !== " "));
  }

  close() { this.code.close(); }
}
// The numbers: what limits the kernel, what was said about it, what its lines do, where the compiler's time went.
class ReportView {
  constructor(app, kernel) {
    Object.assign(this, { app, kernel });
    this.node = el("div", { class: "report", tabIndex: 0 }, this.limits(), this.times(), this.remarks(), this.counters(), this.identity());
  }

  limits() {
    const { limits, metrics, target } = this.kernel;
    const rows = metrics.map(([name, value, of]) => [el("dt", {}, name), el("dd", {}, el("strong", {}, number(value)), el("span", { class: "dim" }, ` ${of}`))]);
    const parts = [el("h2", {}, "What it needs"), el("dl", {}, rows)];
    for (const code of limits.codes ?? []) {
      const key = KEYS[code.location][0];
      const most = Math.max(...Object.values(code.cycles));
      const sorted = Object.entries(code.cycles).sort((a, b) => b[1] - a[1]);
      parts.push(el("h2", { style: "margin-top:18px" }, code.title ?? `Cycles of one ${code.what === "loop" ? "iteration" : "program"}, by the cost model`, key === undefined ? null : [" · ", this.app.locationLink(key)]));
      parts.push(el("div", { class: "bars" }, sorted.flatMap(([name, cycles]) => [
        el("span", {}, name),
        el("div", { class: "track" }, el("div", { class: name === code.limit ? "fill limit" : "fill", style: `width:${(100 * cycles) / most}%` })),
        el("span", { class: "amount" }, number(cycles))])));
      parts.push(el("p", { class: "dim", style: "margin:10px 0 0" }, code.text ?? `At least ${number(code.bound)} cycles, for ${code.limit}${code.peak ? ` (${code.peak})` : ""}; with ${plural(limits.blocks, "block")} on a multiprocessor about ${number(code.estimate)}.`));
    }
    if (!limits.codes) parts.push(el("p", { class: "faint" }, limits.why ?? `There is no cost model and no occupancy for ${target}: it has not been measured.`));
    return el("section", { class: "card", id: "limits" }, parts);
  }

  times() {
    const spent = this.kernel.times;
    const most = Math.max(0.001, ...spent.map(([, ms]) => ms));
    return el("section", { class: "card" }, el("h2", {}, `Compile time, ${time(spent.reduce((sum, [, ms]) => sum + ms, 0))}`),
      el("div", { class: "bars" }, spent.flatMap(([stage, ms]) => [el("span", {}, stage), el("div", { class: "track" }, el("div", { class: "fill", style: `width:${(100 * ms) / most}%` })), el("span", { class: "amount" }, time(ms))])),
      Object.entries(this.kernel.notes).map(([stage, words]) => el("p", { class: "warn" }, `${stage}: ${words}`)));
  }

  remarks() {
    const { remarks } = this.kernel;
    const found = remarks.map((remark) => {
      const key = KEYS[remark.location][0];
      return el("div", { class: `remark remark-${remark.severity}` }, key === undefined ? null : [this.app.locationLink(key), " "], remark.text,
        remark.notes.length ? el("ul", {}, remark.notes.map((note) => el("li", {}, note))) : null);
    });
    return el("section", { class: "card wide", id: "remarks" }, el("h2", {}, "Remarks"), found.length ? found : el("p", { class: "faint", style: "margin:0" }, "The compiler has none."));
  }

  counters() {
    const { counters } = this.kernel;
    if (!counters.lines) return el("section", { class: "card wide", id: "counters" }, el("h2", {}, "Counters"), el("p", { class: "faint", style: "margin:0;white-space:pre-wrap" }, counters.why));
    const { columns } = counters;
    const head = el("tr", {}, el("th", {}, "line"), el("th", { style: "text-align:left" }, "source"), columns.map(([name, words, tip]) =>
      el("th", { title: tip }, el("button", { onclick: () => sorted(name) }, words))));
    const body = el("tbody");
    const cells = (numbers) => columns.map(([name]) => el("td", { class: (name === "conflicts" || name === "spills") && numbers[name] ? "bad" : "" }, numbers[name] == null ? "" : name === "coalescing" ? `${Math.round(100 * numbers[name])}%` : numbers[name] ? number(numbers[name]) : ""));
    const lines = counters.lines.map(([location, numbers]) => ({ key: KEYS[location][0], numbers })).filter(({ key }) => key !== undefined);
    const sorted = (name) => {
      const order = name === "line" ? (a, b) => a.key - b.key : name === "coalescing" ? (a, b) => (a.numbers[name] ?? 2) - (b.numbers[name] ?? 2) : (a, b) => b.numbers[name] - a.numbers[name];
      [...head.children].slice(2).forEach((cell, index) => (columns[index][0] === name ? cell.setAttribute("aria-sort", "descending") : cell.removeAttribute("aria-sort")));
      body.replaceChildren(...lines.sort(order).map(({ key, numbers }) => el("tr", { class: "go", onclick: () => this.app.goSource(key) },
        el("td", {}, this.app.locationLink(key)), el("td", { class: "code-cell" }, this.app.sourceText(key).trim()), cells(numbers))));
    };
    sorted(columns[0][0]);
    const findings = counters.findings.length ? el("pre", { class: "bad", style: "white-space:pre-wrap" }, counters.findings.join("\n")) : null;
    return el("section", { class: "card wide", id: "counters" }, el("h2", {}, `Counters of ${counters.by}, ${counted(counters)}`), findings, counters.note ? el("p", { class: "dim" }, counters.note) : null,
      el("div", { class: "scroll" }, el("table", {}, el("thead", {}, head), body, el("tfoot", {}, el("tr", {}, el("td", {}, "all"), el("td"), cells(counters.total))))));
  }

  identity() {
    const { kernel } = this;
    const rows = (values) => el("dl", {}, Object.entries(values).map(([name, value]) => [el("dt", {}, name), el("dd", { class: "mono" }, String(value))]));
    const options = Object.fromEntries(Object.entries(kernel.options).filter(([, value]) => value !== null));
    return el("section", { class: "card wide" }, el("h2", {}, "How it was compiled"),
      el("div", { style: "display:grid;gap:10px 40px;grid-template-columns:repeat(auto-fit,minmax(220px,1fr))" },
        rows({ kernel: kernel.name, target: kernel.target, tilework: DOC.tilework }), rows(options), rows(kernel.constants), rows(kernel.signature)));
  }
  close() {}
}
// One box that looks everywhere: source, every stage, passes, remarks, layouts.
const SHOWN = 8; // results of each part
class Search {
  constructor(app) {
    this.app = app;
    this.chosen = -1;
    this.input = el("input", { type: "search", id: "search", placeholder: "Search everything  /", "aria-label": "search everything", autocomplete: "off", spellcheck: false });
    this.count = el("span", { class: "count", "aria-live": "polite" });
    this.results = el("div", { class: "results", hidden: true, role: "listbox", "aria-label": "results" });
    this.node = el("div", { class: "search", role: "search" }, this.input, this.count, this.results);
    this.input.addEventListener("input", () => { clearTimeout(this.waiting); this.waiting = setTimeout(() => this.look(), 60); });
    this.input.addEventListener("focus", () => { if (this.hits?.length) this.results.hidden = false; });
    this.input.addEventListener("keydown", (event) => this.key(event));
    document.addEventListener("mousedown", (event) => { if (!this.node.contains(event.target)) this.results.hidden = true; });
  }

  look() {
    const pattern = this.input.value.trim().toLowerCase();
    const { kernel } = this.app;
    const active = pattern.length > 1 ? pattern : null;
    for (const view of views) view.search(active);
    this.hits = [];
    this.chosen = -1;
    this.results.replaceChildren();
    if (!active) { this.results.hidden = true; this.count.textContent = ""; return; }
    const matches = new Uint8Array(DOC.strings.length);
    DOC.strings.forEach((text, index) => { matches[index] = text.toLowerCase().includes(active); });
    const lines = this.app.source.code.lines;
    this.part("source", lines.flatMap((line, index) => (line.kind !== "file" && line.text.toLowerCase().includes(active) ? [[index, line.number, line.text, () => this.app.source.code.go(index)]] : [])));
    for (const stage of kernel.stages) {
      const hits = [];
      stage.rows.forEach((row, index) => { if (matches[DOC.rowStrings[row]]) hits.push([index, index + 1, textOf(row), () => this.app.goStage(stage.name, index)]); });
      this.part(stage.title, hits);
    }
    this.part("passes", this.app.passes(kernel).steps.flatMap((step) => (step.name.toLowerCase().includes(active) ? [[step.number, "", step.name, () => this.app.goPass(step.number)]] : [])));
    this.part("what passes wrote", this.written(matches));
    this.part("remarks", kernel.remarks.flatMap((remark, index) => ([remark.text, ...remark.notes].join(" ").toLowerCase().includes(active) ? [[index, "", remark.text, () => this.app.goRemark(remark)]] : [])));
    this.part("layouts", this.app.types(kernel).list.flatMap((entry) => ([entry.type, ...entry.values].join(" ").toLowerCase().includes(active) ? [[entry.index, "", `${entry.values.slice(0, 3).join(" ")}  ${entry.label}`, () => this.app.showLayout(entry.index)]] : [])));
    this.count.textContent = String(this.total);
    this.results.hidden = !this.hits.length;
    if (!this.hits.length) this.count.textContent = "nothing";
  }

  written(matches) {
    // lines that a pass put into the text, each with the pass
    const hits = [];
    for (const step of this.app.passes(this.app.kernel).steps) {
      const found = step.edits.flatMap(([, , rows]) => rows).find((row) => matches[DOC.rowStrings[row]]);
      if (found !== undefined) hits.push([step.number, "", `${step.name.replace(/\{.*/s, "")}: ${textOf(found).trim()}`, () => this.app.goPass(step.number)]);
    }
    return hits;
  }

  part(title, hits) {
    this.total = (title === "source" ? 0 : this.total) + hits.length;
    if (!hits.length) return;
    this.results.append(el("h3", {}, `${title} · ${hits.length}`));
    for (const [, label, text, go] of hits.slice(0, SHOWN)) {
      const number = this.hits.length;
      const button = el("button", { role: "option", onclick: () => this.choose(number) }, el("span", { class: "n mono" }, String(label)), el("span", { class: "mono" }, text.trim().slice(0, 160)));
      this.hits.push({ go, button });
      this.results.append(button);
    }
    if (hits.length > SHOWN) this.results.append(el("div", { class: "faint", style: "padding:2px 8px 4px 5.2em;font-size:12px" }, `${hits.length - SHOWN} more`));
  }

  choose(index) {
    if (!this.hits?.length) return;
    this.chosen = (index + this.hits.length) % this.hits.length;
    this.hits.forEach(({ button }, at) => button.classList.toggle("on", at === this.chosen));
    this.hits[this.chosen].button.scrollIntoView({ block: "nearest" });
    this.hits[this.chosen].go();
    for (const view of views) view.search(this.input.value.trim().toLowerCase());
  }

  key(event) {
    if (event.key === "Enter") this.choose(this.chosen + (event.shiftKey ? -1 : 1));
    else if (event.key === "ArrowDown") this.choose(this.chosen + 1);
    else if (event.key === "ArrowUp") this.choose(this.chosen - 1);
    else if (event.key === "Escape") {
      if (!this.results.hidden) this.results.hidden = true;
      else { this.input.value = ""; this.look(); this.input.blur(); }
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
// Panes beside the source; each shows one tab: the text of a stage, the passes, the layouts or the report.
class StageView {
  constructor(app, kernel, stage) {
    this.code = new CodeView({ language: LANGUAGE_OF[stage.name] ?? "asm", label: stage.title, onType: (type, line) => app.showLayout(type, line) });
    this.node = this.code.node;
    const hasLayouts = stage.name === "ttgir";
    this.code.show(codeLines(stage.rows), hasLayouts ? aliasesOf(stage.rows) : null, hasLayouts ? app.types(kernel) : null);
  }
  close() { this.code.close(); }
}

class Pane {
  constructor(app, tab) {
    Object.assign(this, { app, tab });
    this.tabs = el("div", { class: "tabs", role: "tablist" });
    this.body = el("div", { class: "body", role: "tabpanel" });
    this.buttons = el("span", {}, el("button", { class: "small", title: "another pane beside this one", "aria-label": "another pane", onclick: () => app.addPane() }, "+"),
      el("button", { class: "small close", title: "close this pane", "aria-label": "close this pane", onclick: () => app.closePane(this) }, "×"));
    this.node = el("section", { class: "pane" }, el("div", { class: "head" }, this.tabs, el("span", { class: "grow" }), this.buttons), this.body);
    this.tabs.addEventListener("keydown", (event) => {
      const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!move) return;
      const names = this.app.tabs().map(([name]) => name);
      this.show(names[(names.indexOf(this.tab) + move + names.length) % names.length]);
      this.tabs.querySelector("[aria-selected=true]").focus();
      event.preventDefault();
    });
  }

  show(tab) {
    const { app } = this;
    const names = app.tabs();
    this.tab = names.some(([name]) => name === tab) ? tab : names[0][0];
    this.tabs.replaceChildren(...names.map(([name, title, extra]) => el("button", {
      class: `tab${extra?.gap ? " gap" : ""}`, role: "tab", "aria-selected": String(name === this.tab), tabIndex: name === this.tab ? 0 : -1, onclick: () => this.show(name), "data-tab": name,
    }, title, extra?.dot ? el("i", { class: "dot", title: extra.dot }) : null)));
    this.view?.close();
    this.view = this.make(this.tab);
    this.body.replaceChildren(this.view.node);
    this.view.code?.draw(true);
    app.remember();
    if (LINKED.pinned) this.view.code?.reveal();
  }

  make(tab) {
    const { kernel } = this.app;
    const stage = kernel.stages.find((one) => one.name === tab);
    if (stage) return new StageView(this.app, kernel, stage);
    if (tab in kernel.notes) return { node: el("div", { class: "note" }, kernel.notes[tab]), close() {} };
    return new { passes: PassesView, layouts: LayoutsView, report: ReportView }[tab](this.app, kernel);
  }
}

function divider(before, after) {
  // between two panes: drag it, or move it with the arrows
  const bar = el("div", { class: "bar", tabIndex: 0, role: "separator", "aria-orientation": "vertical", "aria-label": "width of the panes" });
  const move = (by) => {
    const [left, right] = [before().getBoundingClientRect().width, after().getBoundingClientRect().width];
    const width = Math.max(140, Math.min(left + right - 140, left + by));
    before().style.flex = `${width} 1 0`;
    after().style.flex = `${left + right - width} 1 0`;
  };
  const fix = () => { for (const pane of bar.parentElement.querySelectorAll(".pane")) pane.style.flex = `${pane.getBoundingClientRect().width} 1 0`; };
  bar.addEventListener("pointerdown", (event) => { fix(); bar.setPointerCapture(event.pointerId); bar.dragged = event.clientX; });
  bar.addEventListener("pointermove", (event) => { if (bar.hasPointerCapture(event.pointerId)) { move(event.clientX - bar.dragged); bar.dragged = event.clientX; } });
  bar.addEventListener("keydown", (event) => { const by = { ArrowLeft: -40, ArrowRight: 40 }[event.key]; if (by) { fix(); move(by); event.preventDefault(); } });
  return bar;
}
// The page: which kernel, which panes, and what the keyboard does.
class App {
  constructor() {
    this.known = new Map();
    this.panes = [];
    this.source = new SourceView(this);
    this.search = new Search(this);
    const names = DOC.kernels.map((kernel, index) => el("option", { value: index }, this.title(kernel)));
    this.select = el("select", { "aria-label": "kernel", id: "kernel", onchange: () => this.show(Number(this.select.value)) }, names);
    const brand = el("span", { class: "brand" }, el("i", { "aria-hidden": "true" }, ["#4f6bed", "#e0813f", "#35a58a", "#b05ac4"].map((colour) => el("b", { style: `background:${colour}` }))), "tilework");
    this.chips = el("span", { class: "chips" });
    this.top = el("header", { class: "top" }, brand, DOC.kernels.length > 1 ? this.select : null, this.chips, el("span", { class: "grow" }), this.search.node, themeButton(),
      el("button", { class: "icon", title: "keys (?)", "aria-label": "keys", onclick: () => this.help() }, "?"));
    this.facts = el("div", { class: "facts", role: "region", "aria-label": "numbers" });
    this.area = el("main", { class: "panes" });
    document.getElementById("app").append(this.top, this.facts, this.area);
    document.addEventListener("keydown", (event) => this.key(event));
  }

  title(kernel) {
    const facts = (one) => Object.entries({ ...one.constants, ...one.options, ...one.signature }).filter(([name]) => name !== "auto_tma").map(([name, value]) => `${name}=${value}`);
    const others = DOC.kernels.filter((other) => other.name === kernel.name).map(facts);
    const differing = facts(kernel).filter((fact) => !others.every((other) => other.includes(fact)));
    return [kernel.name, kernel.target, ...differing.slice(0, 4)].join(" · ");
  }

  show(index) {
    this.kernel = DOC.kernels[index];
    link("pinned", null);
    const { kernel } = this;
    this.select.value = index;
    this.chips.replaceChildren(...(DOC.kernels.length > 1 ? [] : [el("strong", {}, kernel.name), el("span", { class: "chip" }, kernel.target)]),
      ...Object.entries(kernel.constants).slice(0, 4).map(([name, value]) => el("span", { class: "chip mono" }, `${name}=${value}`)));
    this.facts.replaceChildren(...kernel.metrics.map(([name, value, of]) => el("div", { class: "fact" }, el("div", { class: "k" }, name),
      el("div", { class: `v${name === "spills" && value ? " bad" : ""}` }, number(value), el("span", { class: "u" }, of)))));
    this.source.show(kernel);
    if (!this.panes.length) this.start();
    else for (const pane of this.panes) pane.show(pane.tab);
  }

  start() {
    const stages = this.kernel.stages.map((stage) => stage.name);
    const middle = stages.find((name) => name === "ttgir" || name === "ttcir") ?? stages[0];
    const machine = stages.findLast((name) => ["ptx", "amdgcn", "asm", "llir"].includes(name)) ?? stages.at(-1);
    const wanted = innerWidth > 1250 && machine !== middle ? [middle, machine] : [middle];
    for (const tab of wanted) this.addPane(tab);
  }

  tabs() {
    const { kernel } = this;
    const stages = kernel.stages.map((stage) => [stage.name, stage.title]);
    const missing = ["sass"].filter((name) => name in kernel.notes).map((name) => [name, "SASS"]);
    return [...stages, ...missing, ["passes", "Passes", { gap: true }], ["layouts", "Layouts"], ["report", "Report", { dot: kernel.remarks.length ? plural(kernel.remarks.length, "remark") : null }]];
  }

  addPane(tab = "report") {
    const pane = new Pane(this, tab);
    this.panes.push(pane);
    this.arrange();
    pane.show(tab);
  }
  closePane(pane) {
    if (this.panes.length === 1) return;
    pane.view.close();
    this.panes = this.panes.filter((one) => one !== pane);
    this.arrange();
  }
  arrange() {
    const nodes = [this.source.node, ...this.panes.map((pane) => pane.node)];
    for (const node of nodes) node.style.flex = "";
    this.area.replaceChildren(...nodes.flatMap((node, index) => (index ? [divider(() => nodes[index - 1], () => node), node] : [node])));
    this.area.classList.toggle("single", this.panes.length === 1);
    for (const pane of this.panes) pane.node.querySelector(".close").hidden = this.panes.length === 1;
  }
  remember() { document.documentElement.dataset.tabs = this.panes.map((pane) => pane.tab).join(" "); }

  // what is computed once for each kernel
  of(kernel, what, make) {
    const memo = this.known.get(kernel) ?? this.known.set(kernel, {}).get(kernel);
    return (memo[what] ??= make());
  }
  passes(kernel) { return this.of(kernel, "passes", () => new Passes(kernel)); }
  types(kernel) {
    return this.of(kernel, "types", () => {
      const list = Object.entries(kernel.layouts).map(([type, data], index) => ({ type, data, index, values: [], label: `${data.shape.join("×")} ${/<(?:\d+x)+([^,]+),/.exec(type)?.[1].replace("!tt.ptr", "ptr") ?? ""}` }));
      const names = new Map(list.map((entry) => [entry.type, entry.index]));
      const rows = kernel.stages.find((stage) => stage.name === "ttgir")?.rows ?? [];
      const aliases = aliasesOf(rows);
      for (const row of rows) {
        const text = textOf(row);
        const value = /^\s*(%[\w.-]+)/.exec(text)?.[1];
        const spans = value ? typesIn(text) : [];
        const entry = spans.length ? list[names.get(spelledOut(text.slice(...spans.at(-1)), aliases)) ?? -1] : null;
        if (entry && !entry.values.includes(value)) entry.values.push(value);
      }
      return { list, names };
    });
  }

  // ways to go
  paneFor(tab) {
    const pane = this.panes.find((one) => one.tab === tab) ?? this.panes.at(-1);
    if (pane.tab !== tab) pane.show(tab);
    return pane;
  }
  goStage(name, index) { this.paneFor(name).view.code.go(index); }
  goPass(number) { this.paneFor("passes").view.show(number); }
  goRemark(remark) {
    this.paneFor("report").view.node.querySelector("#remarks").scrollIntoView();
    const [key] = KEYS[remark.location];
    if (key !== undefined) this.goSource(key);
  }
  goSource(key) {
    const { code } = this.source;
    const index = code.lines.findIndex((line) => line.keys[0] === key);
    if (index < 0) return;
    code.go(index);
    link("pinned", { ...code.linkOf(code.lines[index]), index });
  }
  showLayout(type) { this.paneFor("layouts").view.show(type); }
  locationLink(key) { return el("button", { class: "link mono", onclick: (event) => { event.stopPropagation(); this.goSource(key); } }, locationName(key)); }
  sourceText(key) {
    const part = DOC.files[fileOf(key)].parts.find(({ first, lines }) => lineOf(key) >= first && lineOf(key) < first + lines.length);
    return part ? DOC.strings[part.lines[lineOf(key) - part.first]] : "";
  }

  key(event) {
    const typing = event.target.closest?.("input, select, textarea");
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && !typing) { link("pinned", null); link("hover", null); return; }
    if (typing) return;
    const tabs = this.tabs();
    if (event.key === "/") this.search.input.focus();
    else if (event.key === "t") document.getElementById("theme").click();
    else if (event.key === "?") this.help();
    else if (event.key === "n") this.search.choose(this.search.chosen + 1);
    else if (event.key === "N") this.search.choose(this.search.chosen - 1);
    else if (/^[1-9]$/.test(event.key) && tabs[event.key - 1]) this.paneOfFocus().show(tabs[event.key - 1][0]);
    else return;
    event.preventDefault();
  }
  paneOfFocus() { return this.panes.find((pane) => pane.node.contains(document.activeElement)) ?? this.panes.at(-1); }

  help() {
    const keys = [["/", "search everything; Enter, Shift+Enter or n, N: next, previous"], ["↑ ↓", "lines of the pane with the focus (Tab changes it); Enter keeps its links lit"], ["Esc", "lights out"],
      ["1 … 9", "tabs of the pane with the focus"], ["← →", "tabs, and widths of panes"], ["t", "light or dark"], ["?", "these keys"]];
    const dialog = el("dialog", { onclose: () => dialog.remove(), onclick: (event) => { if (event.target === dialog) dialog.close(); } }, el("h2", {}, "Point at a line: what became of it, or what it came from, lights up. Click to keep it."),
      el("div", { class: "keys" }, keys.flatMap(([key, words]) => [el("kbd", {}, key), el("span", {}, words)])));
    document.body.append(dialog);
    dialog.showModal();
  }
}

const app = new App();
app.show(0);
requestAnimationFrame(() => { document.documentElement.dataset.ready = String(Math.round(performance.now())); });
