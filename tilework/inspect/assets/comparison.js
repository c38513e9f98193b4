// Two compilations: numbers side by side, and the difference of each stage and behind each pass.
class Comparison {
  constructor() {
    this.whole = false;
    this.buttons = [];
    const [a, b] = DOC.titles;
    const brand = el("span", { class: "brand" }, el("i", { "aria-hidden": "true" }, ["#4f6bed", "#e0813f", "#35a58a", "#b05ac4"].map((colour) => el("b", { style: `background:${colour}` }))), "tilework diff");
    const top = el("header", { class: "top" }, brand, el("span", { class: "chip del-chip" }, `a  ${a}`), el("span", { class: "chip add-chip" }, `b  ${b}`), el("span", { class: "grow" }), themeButton());
    const facts = el("div", { class: "facts", role: "region", "aria-label": "numbers" }, DOC.metrics.map(([name, left, right, of]) => el("div", { class: "fact", title: of }, el("div", { class: "k" }, name),
      el("div", { class: "v" }, left === right ? el("span", { class: "dim" }, number(left)) : [this.value(left), el("span", { class: "u" }, " → "), this.value(right), this.change(left, right)]))));
    this.list = el("nav", { class: "list", "aria-label": "stages and passes" });
    this.code = new CodeView({ language: "mlir", label: "difference" });
    this.tools = el("div", { class: "tools" });
    const main = el("main", { class: "panes" }, el("section", { class: "pane" }, el("div", { class: "split" }, this.list, el("div", { class: "detail" }, this.tools, this.code.node))));
    document.getElementById("app").append(top, facts, main);
    this.texts = [...DOC.stages, ...DOC.steps];
    this.list.append(el("h3", {}, "stages"));
    DOC.stages.forEach((text, index) => this.button(text, index));
    for (const [name, which] of DOC.only) this.list.append(el("div", { class: "faint", style: "padding:3px 12px" }, `${name}: only in ${"ab"[which]}`));
    const first = DOC.steps.findIndex((step) => step.edits.length);
    if (DOC.steps.length) this.list.append(el("h3", {}, "behind each pass"));
    DOC.steps.forEach((text, index) => this.button(text, DOC.stages.length + index, index === first));
    if (DOC.parted) this.list.append(el("div", { class: "warn", style: "padding:6px 12px" }, DOC.parted));
    this.list.addEventListener("keydown", (event) => {
      const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!move) return;
      event.preventDefault();
      this.show(Math.max(0, Math.min(this.texts.length - 1, this.chosen + move)));
      this.buttons[this.chosen].focus();
    });
    document.addEventListener("keydown", (event) => { if (event.key === "t" && !event.ctrlKey && !event.metaKey) document.getElementById("theme").click(); });
    this.show(first >= 0 ? DOC.stages.length + first : Math.max(0, DOC.stages.findIndex((text) => text.edits.length)));
  }

  value(value) { return value === null ? "–" : number(value); }
  change(left, right) {
    if (typeof left !== "number" || typeof right !== "number" || !left) return null;
    const percent = Math.round((100 * (right - left)) / left);
    return el("span", { class: "u" }, percent ? `${percent > 0 ? "+" : "−"}${Math.abs(percent)}%` : "");
  }

  button(text, index, isFirst = false) {
    const count = changes(text.rows, text.edits);
    const button = el("button", { class: text.edits.length ? "" : "same", title: text.name, onclick: () => this.show(index) }, el("span", { class: "name" }, text.name.replace(/\{.*/s, "")),
      isFirst ? el("span", { class: "chip" }, "first") : null,
      text.edits.length ? el("span", { class: "delta" }, el("b", {}, `+${count.added}`), " ", el("s", {}, `−${count.removed}`)) : el("span", { class: "ms" }, "same"));
    button.dataset.text = text.name;
    this.buttons[index] = button;
    this.list.append(button);
  }

  show(index) {
    this.chosen = index;
    const text = this.texts[index];
    this.buttons.forEach((button, at) => button.setAttribute("aria-current", String(at === index)));
    this.buttons[index].scrollIntoView({ block: "nearest" });
    this.code.language = index < DOC.stages.length ? { source: "python", LLVM: "llvm", PTX: "asm", SASS: "asm", AMDGCN: "gcn", assembly: "host" }[text.name] ?? "mlir" : "mlir";
    fill(this.tools, el("strong", {}, text.name), text.edits.length ? null : el("span", { class: "faint" }, `the same, ${plural(text.lines, "line")}`), el("span", { class: "grow" }),
      el("label", {}, el("input", { type: "checkbox", checked: this.whole, onchange: (event) => { this.whole = event.target.checked; this.show(index); } }), "whole text"));
    this.code.show(foldedDiff(diffLines(text.rows, text.edits), this.whole, () => { this.whole = true; this.show(index); }));
    this.code.node.scrollTop = 0;
  }
}

new Comparison();
requestAnimationFrame(() => { document.documentElement.dataset.ready = String(Math.round(performance.now())); });
