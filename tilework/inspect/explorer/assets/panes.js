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
