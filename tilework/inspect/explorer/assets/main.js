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
    const [key] = KEYS[remark.place];
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
  placeLink(key) { return el("button", { class: "link mono", onclick: (event) => { event.stopPropagation(); this.goSource(key); } }, placeName(key)); }
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
