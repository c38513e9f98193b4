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
    for (const [, place, text, go] of hits.slice(0, SHOWN)) {
      const number = this.hits.length;
      const button = el("button", { role: "option", onclick: () => this.choose(number) }, el("span", { class: "n mono" }, String(place)), el("span", { class: "mono" }, text.trim().slice(0, 160)));
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
