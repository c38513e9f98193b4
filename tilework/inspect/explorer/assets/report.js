// The numbers: what limits the kernel, what was said about it, what its lines do, where the compiler's time went.
const COLUMNS = [
  ["instructions", "instructions", "of warps"], ["sectors", "sectors", "of 32 bytes of global memory, moved"],
  ["coalescing", "used", "of the bytes that were moved, those that threads wanted"], ["turns", "turns", "of shared memory"],
  ["conflicts", "conflicts", "turns that even use of the banks would save"], ["tensor", "tensor ops", "multiplications and additions of tensor cores"],
];

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
      const key = KEYS[code.place][0];
      const most = Math.max(...Object.values(code.cycles));
      const sorted = Object.entries(code.cycles).sort((a, b) => b[1] - a[1]);
      parts.push(el("h2", { style: "margin-top:18px" }, `Cycles of one ${code.what === "loop" ? "iteration" : "program"}, by the cost model`, key === undefined ? null : [" · ", this.app.placeLink(key)]));
      parts.push(el("div", { class: "bars" }, sorted.flatMap(([name, cycles]) => [
        el("span", {}, name),
        el("div", { class: "track" }, el("div", { class: name === code.limit ? "fill limit" : "fill", style: `width:${(100 * cycles) / most}%` })),
        el("span", { class: "amount" }, number(cycles))])));
      parts.push(el("p", { class: "dim", style: "margin:10px 0 0" }, `At least ${number(code.bound)} cycles, for ${code.limit}${code.peak ? ` (${code.peak})` : ""}; with ${plural(limits.blocks, "block")} on a multiprocessor about ${number(code.estimate)}.`));
    }
    if (!limits.codes) parts.push(el("p", { class: "faint" }, target === "cpu" ? "There is no cost model for the CPU." : `Nobody has measured ${target}: there is no cost model for it, and no occupancy.`));
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
      const key = KEYS[remark.place][0];
      return el("div", { class: `remark remark-${remark.severity}` }, key === undefined ? null : [this.app.placeLink(key), " "], remark.text,
        remark.notes.length ? el("ul", {}, remark.notes.map((note) => el("li", {}, note))) : null);
    });
    return el("section", { class: "card wide", id: "remarks" }, el("h2", {}, "Remarks"), found.length ? found : el("p", { class: "faint", style: "margin:0" }, "The compiler has none."));
  }

  counters() {
    const { counters } = this.kernel;
    if (!counters.lines) return el("section", { class: "card wide", id: "counters" }, el("h2", {}, "Counters"), el("p", { class: "faint", style: "margin:0;white-space:pre-wrap" }, counters.why));
    const head = el("tr", {}, el("th", {}, "line"), el("th", { style: "text-align:left" }, "source"), COLUMNS.map(([name, words, tip]) =>
      el("th", { title: tip }, el("button", { onclick: () => sorted(name) }, words))));
    const body = el("tbody");
    const cells = (numbers) => COLUMNS.map(([name]) => el("td", { class: name === "conflicts" && numbers[name] ? "bad" : "" }, numbers[name] === null ? "" : name === "coalescing" ? `${Math.round(100 * numbers[name])}%` : numbers[name] ? number(numbers[name]) : ""));
    const lines = counters.lines.map(([place, numbers]) => ({ key: KEYS[place][0], numbers })).filter(({ key }) => key !== undefined);
    const sorted = (name) => {
      const order = name === "line" ? (a, b) => a.key - b.key : name === "coalescing" ? (a, b) => (a.numbers[name] ?? 2) - (b.numbers[name] ?? 2) : (a, b) => b.numbers[name] - a.numbers[name];
      [...head.children].slice(2).forEach((cell, index) => (COLUMNS[index][0] === name ? cell.setAttribute("aria-sort", "descending") : cell.removeAttribute("aria-sort")));
      body.replaceChildren(...lines.sort(order).map(({ key, numbers }) => el("tr", { class: "go", onclick: () => this.app.goSource(key) },
        el("td", {}, this.app.placeLink(key)), el("td", { class: "code-cell" }, this.app.sourceText(key).trim()), cells(numbers))));
    };
    sorted("instructions");
    const told = counters.findings.length ? el("pre", { class: "bad", style: "white-space:pre-wrap" }, counters.findings.join("\n")) : null;
    return el("section", { class: "card wide", id: "counters" }, el("h2", {}, `Counters of the emulator, ${counted(counters)}`), told,
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
