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
