// The data of the page, and what follows from them. A text is a list of rows; a row has a string and a location, which is a list of
// [file, line]: first the line of its own code, then the lines of the calls that led there. A line of the source is one number, its key.
const DOC = JSON.parse(await unpacked(document.getElementById("data")));
async function unpacked(node) {
  if (!("packed" in node.dataset)) return node.textContent;
  const text = atob(node.textContent);
  const bytes = new Uint8Array(text.length);
  for (let index = 0; index < text.length; index++) bytes[index] = text.charCodeAt(index);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
}
const SPAN = 2 ** 21; // lines of a file, at most
const keyOf = (file, line) => file * SPAN + line;
const fileOf = (key) => Math.floor(key / SPAN);
const lineOf = (key) => key % SPAN;
const KEYS = DOC.locations.map((location) => location.map(([file, line]) => keyOf(file, line)));
const textOf = (row) => DOC.strings[DOC.rowStrings[row]];
const keysOf = (row) => KEYS[DOC.rowLocations[row]];
const hueOf = (key) => (lineOf(key) * 47 + fileOf(key) * 131) % 360;
const locationName = (key) => `${DOC.files[fileOf(key)].label}:${lineOf(key)}`;

// Every pass of a kernel, with the text before and behind it; texts are made when they are asked for.
class Passes {
  constructor(kernel) {
    this.steps = [];
    for (const run of kernel.runs) {
      run.steps.forEach((step, index) => this.steps.push({ ...step, run, index, number: this.steps.length }));
    }
    this.texts = new Map();
  }
  text(run, index) {
    // after `index` steps
    if (index === 0) return run.rows;
    const known = `${run.tag}/${this.steps.findIndex((step) => step.run === run)}/${index}`;
    if (!this.texts.has(known)) this.texts.set(known, applied(this.text(run, index - 1), run.steps[index - 1].edits));
    return this.texts.get(known);
  }
  before(step) { return this.text(step.run, step.index); }
  after(step) { return this.text(step.run, step.index + 1); }
}

function applied(before, edits) {
  const after = [];
  let done = 0;
  for (const [at, removed, rows] of edits) {
    for (; done < at; done++) after.push(before[done]);
    for (const row of rows) after.push(row);
    done = at + removed;
  }
  for (; done < before.length; done++) after.push(before[done]);
  return after;
}

// The lines of a diff: {row, sign}; sign is " ", "+" or "-". Rows that differ only in their location count as the same.
function diffLines(before, edits) {
  const lines = [];
  let done = 0;
  for (const [at, removed, rows] of edits) {
    for (; done < at; done++) lines.push({ row: before[done], sign: " " });
    lines.push(...matched(before.slice(at, at + removed), rows));
    done = at + removed;
  }
  for (; done < before.length; done++) lines.push({ row: before[done], sign: " " });
  return lines;
}

const MATCHED = 400; // rows of an edit that are compared with each other
function matched(old, fresh) {
  const gone = (row) => ({ row, sign: "-" });
  const come = (row) => ({ row, sign: "+" });
  const same = (a, b) => DOC.rowStrings[a] === DOC.rowStrings[b];
  if (!old.length || !fresh.length || old.length > MATCHED || fresh.length > MATCHED) return [...old.map(gone), ...fresh.map(come)];
  const width = fresh.length + 1;
  const best = new Uint16Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = fresh.length - 1; j >= 0; j--) {
      best[i * width + j] = same(old[i], fresh[j]) ? best[(i + 1) * width + j + 1] + 1 : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
    }
  }
  const lines = [];
  let i = 0;
  let j = 0;
  while (i < old.length && j < fresh.length) {
    if (same(old[i], fresh[j])) { lines.push({ row: fresh[j], sign: " " }); i++; j++; }
    else if (best[(i + 1) * width + j] >= best[i * width + j + 1]) lines.push(gone(old[i++]));
    else lines.push(come(fresh[j++]));
  }
  return [...lines, ...old.slice(i).map(gone), ...fresh.slice(j).map(come)];
}

function changes(before, edits) {
  // how many lines came and went
  let added = 0;
  let removed = 0;
  for (const [at, count, rows] of edits) {
    for (const line of matched(before.slice(at, at + count), rows)) {
      added += line.sign === "+";
      removed += line.sign === "-";
    }
  }
  return { added, removed };
}

// Layouts: the names that a text gives them, and types without those.
const ALIAS = /^#(\w+) = (.*)$/;
function aliasesOf(rows) {
  const found = new Map();
  for (const row of rows) {
    const match = ALIAS.exec(textOf(row));
    if (match) found.set(match[1], spelledOut(match[2], found));
  }
  return found;
}
const spelledOut = (text, aliases) => text.replace(/#(\w+)\b(?!\.)/g, (whole, name) => aliases.get(name) ?? whole);

function typesIn(text) {
  // [start, end] of the types with a layout in a line of IR
  const found = [];
  for (const match of text.matchAll(/(?:!ttg\.memdesc|tensor)</g)) {
    let depth = 0;
    for (let index = match.index; index < text.length; index++) {
      if (text[index] === "<") depth++;
      else if (text[index] === ">" && text[index - 1] !== "-" && --depth === 0) {
        if (text.slice(match.index, index).includes("#")) found.push([match.index, index + 1]);
        break;
      }
    }
  }
  return found;
}

const LINKED = { hover: null, pinned: null }; // {keys: Set, own: Set, source: bool}
const listeners = new Set();
function link(kind, value) {
  LINKED[kind] = value;
  for (const listener of listeners) listener(kind, value);
}
// Small things: elements, numbers, tips, the theme.
function el(tag, props = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "style") made.style.cssText = value;
    else if (name === "class") made.className = value;
    else if (name in made && !name.includes("-") && name !== "list") made[name] = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  return fill(made, ...children);
}
function fill(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

const escaped = (text) => text.replace(/[&<>]/g, (char) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[char]);
const number = (value) => (typeof value === "number" ? value.toLocaleString("en-US", { maximumFractionDigits: 1 }).replace(/,/g, "\u202f") : String(value));
const short = (value) => (value < 1e4 ? String(value) : value < 1e6 ? `${(value / 1e3).toPrecision(3)}k` : `${(value / 1e6).toPrecision(3)}M`);
const time = (ms) => (ms === null || ms === undefined ? "" : ms >= 1000 ? `${(ms / 1000).toFixed(2)} s` : ms >= 10 ? `${ms.toFixed(0)} ms` : ms >= 0.1 ? `${ms.toFixed(1)} ms` : `${(ms * 1000).toFixed(0)} µs`);
const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

let tip = null;
function showTip(text, x, y) {
  hideTip();
  tip = el("div", { class: "tip", role: "tooltip" }, text);
  document.body.append(tip);
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(6, Math.min(x + 14, innerWidth - width - 8))}px`;
  tip.style.top = `${y + 18 + height > innerHeight ? Math.max(6, y - height - 10) : y + 18}px`;
}
function hideTip() { tip?.remove(); tip = null; }

const THEMES = { auto: "◐", light: "☀", dark: "☾" };
function themeButton() {
  const stored = (() => { try { return localStorage.getItem("tilework-theme"); } catch { return null; } })();
  const button = el("button", { class: "icon", id: "theme", onclick: () => set(next()) });
  const dark = () => matchMedia("(prefers-color-scheme: dark)").matches;
  const shown = () => document.documentElement.dataset.theme ?? (dark() ? "dark" : "light");
  const next = () => (shown() === "dark" ? "light" : "dark");
  function set(theme) {
    if (theme) document.documentElement.dataset.theme = theme;
    try { if (theme) localStorage.setItem("tilework-theme", theme); } catch { /* a file in a browser that keeps nothing */ }
    button.textContent = THEMES[next()];
    button.title = `${next()} colours (t)`;
    button.setAttribute("aria-label", button.title);
    document.dispatchEvent(new Event("themed"));
  }
  set(stored in THEMES && stored !== "auto" ? stored : null);
  return button;
}

function seg(label, options, chosen, choose) {
  // buttons of which one is pressed
  const group = el("span", { class: "seg", role: "group", "aria-label": label });
  for (const [value, words] of options) {
    group.append(el("button", { "aria-pressed": String(value === chosen), onclick: () => {
      for (const button of group.children) button.setAttribute("aria-pressed", String(button.dataset.value === String(value)));
      choose(value);
    }, "data-value": String(value) }, words));
  }
  return group;
}
// Code in lines of equal height, of which only those in sight are in the page. Lines are linked by the lines of the source that they come
// from: pointing at one lights the others up, everywhere; a click, or Enter, keeps the light on and brings them into sight.
const LINE = 18;
const views = new Set();

const LANGUAGES = {
  python: /(?<com>#.*)|(?<str>"""[^]*?"""|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?<key>\b(?:def|return|for|in|if|else|elif|while|and|or|not|is|None|True|False|import|from|as|with|assert|lambda|pass)\b)|(?<type>\btl\.\w+|\btriton\.\w+|\btilework\.\w+)|(?<val>@[\w.]+)|(?<num>\b\d[\d_.]*(?:e[+-]?\d+)?\b)/g,
  string: /(?<str>.+)/g,
  mlir: /(?<com>\/\/.*)|(?<str>"(?:[^"\\]|\\.)*")|(?<val>%[\w.$#-]+|\^\w+)|(?<key>#\w+\b(?!\.))|(?<type>!?\b(?:tensor|ttg\.memdesc|tt\.ptr|tensordesc)\b|\b[iuf]\d+\b|\bbf16\b|\bindex\b)|(?<op>\b(?:tt|ttg|ttng|ttc|arith|scf|math|cf|gpu|llvm|nvvm|amdg|amdgpu|ub)\.[\w.]+|\bmodule\b)|(?<num>(?<![\w%])-?\d[\d.]*(?:e[+-]?\d+)?\b)/g,
  llvm: /(?<com>;.*)|(?<str>c?"(?:[^"\\]|\\.)*")|(?<val>%[\w.$-]+|@[\w.$-]+)|(?<type>\b(?:i\d+|half|bfloat|float|double|void|ptr|label|addrspace\(\d+\))\b)|(?<op>\b(?:load|store|call|br|ret|phi|select|icmp|fcmp|add|sub|mul|sdiv|udiv|srem|urem|fadd|fsub|fmul|fdiv|getelementptr|bitcast|sext|zext|trunc|and|or|xor|shl|lshr|ashr|extractelement|insertelement|shufflevector|extractvalue|insertvalue|fpext|fptrunc|switch|unreachable|atomicrmw|cmpxchg|fence|asm)\b)|(?<key>\b(?:define|declare|attributes|align|nsw|nuw|inbounds|to|x|volatile|sideeffect)\b)|(?<num>(?<![\w%@.])-?\d[\w.+]*)/g,
  asm: /(?<com>\/\/.*)|(?<str>"(?:[^"\\]|\\.)*")|(?<key>^\s*\.\w+|^[$.\w]+:)|(?<val>%[\w.]+|\b[svaR]\[?\d[\d:]*\]?|\bUR\d+|\bU?P\d|\bR\d+)|(?<op>(?<=^\s*(?:@!?%?\w+\s+)?(?:[\w-]+:[\w-]+:[\w-]+:[\w-]+:\w+\s+)?)[a-zA-Z][\w.]+(?=\s|;|$))|(?<num>(?<![\w%.])-?(?:0x[\da-fA-F]+|\d[\w.]*))/g,
};
const commented = (sign) => new RegExp(LANGUAGES.asm.source.replace("\\/\\/.*", sign), "g");
Object.assign(LANGUAGES, { gcn: commented(";.*"), host: commented("#.*") });
const LANGUAGE_OF = { source: "python", ttir: "mlir", ttgir: "mlir", ttcir: "mlir", llir: "llvm", ptx: "asm", amdgcn: "gcn", asm: "host", sass: "asm" };

function coloured(text, language, marks, spans) {
  // HTML of a line; marks: [start, end] that a search found; spans: [start, end, class, data] of types with a layout
  const cuts = [];
  for (const match of text.matchAll(LANGUAGES[language])) {
    const kind = Object.keys(match.groups).find((name) => match.groups[name] !== undefined);
    if (match[0]) cuts.push([match.index, match.index + match[0].length, `tok-${kind}`]);
  }
  const at = new Set([0, text.length]);
  for (const [start, end] of [...cuts, ...marks, ...spans]) at.add(start).add(end);
  const points = [...at].sort((a, b) => a - b);
  const inside = (list, from) => list.find(([start, end]) => start <= from && from < end);
  let html = "";
  for (let index = 0; index + 1 < points.length; index++) {
    const from = points[index];
    let piece = escaped(text.slice(from, points[index + 1]));
    const token = inside(cuts, from);
    const span = inside(spans, from);
    if (token || span) piece = `<span class="${token?.[2] ?? ""}${span ? " has-layout" : ""}"${span ? ` data-type="${span[2]}"` : ""}>${piece}</span>`;
    html += inside(marks, from) ? `<mark>${piece}</mark>` : piece;
  }
  return html;
}

class CodeView {
  // lines: {text, keys, number, sign?, kind?, extra?}: `extra` is HTML before the text
  constructor({ language, label, isSource = false, onType = null }) {
    Object.assign(this, { language, isSource, onType });
    this.lines = [];
    this.here = -1;
    this.pattern = null;
    this.rows = el("div", { class: "rows" });
    this.space = el("div", { class: "space" }, this.rows);
    this.node = el("div", { class: "code", tabIndex: 0, role: "listbox", "aria-label": label }, this.space);
    this.node.addEventListener("scroll", () => this.draw());
    this.node.addEventListener("mousemove", (event) => this.point(event));
    this.node.addEventListener("mouseleave", () => { hideTip(); link("hover", null); });
    this.node.addEventListener("click", (event) => this.click(event));
    this.node.addEventListener("keydown", (event) => this.key(event));
    this.sized = new ResizeObserver(() => this.draw());
    this.sized.observe(this.node);
    views.add(this);
  }
  close() { this.sized.disconnect(); views.delete(this); }

  show(lines, aliases = null, types = null) {
    Object.assign(this, { lines, aliases, types });
    this.index = null;
    this.here = -1;
    let longest = 0;
    for (const line of lines) longest = Math.max(longest, line.text.length);
    this.space.style.height = `${lines.length * LINE + 30}px`;
    this.space.style.minWidth = `${longest + 16}ch`;
    this.first = this.last = -1;
    this.draw(true);
  }

  draw(force = false) {
    const first = Math.max(0, Math.floor(this.node.scrollTop / LINE) - 15);
    const last = Math.min(this.lines.length, first + Math.ceil((this.node.clientHeight || 600) / LINE) + 30);
    if (!force && first === this.first && last === this.last) return;
    Object.assign(this, { first, last });
    this.rows.style.transform = `translateY(${first * LINE}px)`;
    let html = "";
    for (let index = first; index < last; index++) html += this.html(index);
    this.rows.innerHTML = html;
  }

  html(index) {
    const line = this.lines[index];
    const [key] = line.keys;
    const marks = this.pattern ? found(line.text, this.pattern) : [];
    const spans = this.types ? typesIn(line.text).map(([start, end]) => [start, end, this.known(line.text.slice(start, end))]).filter(([, , type]) => type >= 0) : [];
    const body = line.kind === "file" || line.kind === "fold" ? escaped(line.text) : coloured(line.text, line.language ?? this.language, marks, spans);
    const classes = ["row", line.kind ?? "", key === undefined ? "" : "linked", this.classes(line, index)].join(" ");
    const style = key === undefined ? "" : ` style="--h:${hueOf(key)}"`;
    const sign = line.sign === undefined ? "" : `<span class="sign">${line.sign}</span>`;
    const selected = index === this.here ? ' aria-selected="true"' : "";
    return `<div class="${classes}" role="option" data-i="${index}"${line.number ? ` data-line="${line.number}"` : ""}${style}${selected}><span class="num">${line.number ?? ""}</span>${line.extra ?? ""}${sign}<span class="text">${body}</span></div>`;
  }

  known(type) { return this.types.names.get(spelledOut(type, this.aliases)) ?? -1; }

  classes(line, index) {
    const found = index === this.here ? ["here"] : [];
    for (const [kind, name] of [["hover", "lit"], ["pinned", "pinned"]]) {
      const how = LINKED[kind] && this.match(line, LINKED[kind]);
      if (how) found.push(how === "weak" ? (kind === "hover" ? "weak" : "") : name);
    }
    return found.join(" ");
  }

  match(line, linked) {
    // from a line of the source: all that it led to; from IR: what has the same location, and the calls on the way
    if (this.isSource) return linked.own.has(line.keys[0]) ? "own" : linked.keys.has(line.keys[0]) ? "weak" : null;
    if (linked.source) return line.keys.some((key) => linked.own.has(key)) ? "own" : null;
    return line.keys.length && linked.own.has(line.keys[0]) ? "own" : null;
  }

  linked(kind) {
    // only classes change
    for (const row of this.rows.children) {
      const index = Number(row.dataset.i);
      const line = this.lines[index];
      row.className = ["row", line.kind ?? "", line.keys.length ? "linked" : "", this.classes(line, index)].join(" ");
    }
    if (kind === "pinned" && LINKED.pinned && LINKED.pinned.from !== this) this.reveal();
  }

  reveal() {
    // scroll to where most of the linked lines are, unless half as many are in sight
    const hits = [];
    for (let index = 0; index < this.lines.length; index++) if (this.match(this.lines[index], LINKED.pinned) === "own") hits.push(index);
    const height = Math.floor(this.node.clientHeight / LINE / 2);
    const near = (index) => hits.filter((hit) => hit >= index && hit < index + height).length;
    const top = Math.floor(this.node.scrollTop / LINE);
    const seen = hits.filter((hit) => hit >= top && hit < top + 2 * height - 1).length;
    let best = { count: 0, index: -1 };
    for (const index of hits.slice(0, 400)) if (near(index) > best.count) best = { count: near(index), index };
    if (best.index >= 0 && 2 * seen < best.count) this.scrollTo(best.index);
  }

  scrollTo(index) {
    this.node.scrollTop = Math.max(0, (index - this.node.clientHeight / LINE / 3) * LINE);
    this.draw();
  }

  go(index) {
    // make a line the current one, in sight
    this.here = Math.max(0, Math.min(this.lines.length - 1, index));
    const top = this.here * LINE;
    if (top < this.node.scrollTop || top + LINE > this.node.scrollTop + this.node.clientHeight - LINE) this.scrollTo(this.here);
    this.draw(true);
  }

  lineAt(event) {
    const row = event.target.closest(".row");
    return row && this.node.contains(row) ? Number(row.dataset.i) : -1;
  }

  point(event) {
    const index = this.lineAt(event);
    const line = this.lines[index];
    const flag = event.target.closest("[data-tip]");
    if (flag) showTip(flag.dataset.tip, event.clientX, event.clientY);
    else hideTip();
    if (index === this.pointed && LINKED.hover) return;
    this.pointed = index;
    link("hover", line && line.keys.length ? this.linkOf(line) : null);
  }

  linkOf(line) { return { keys: new Set(line.keys), own: new Set([line.keys[0]]), source: this.isSource, from: this }; }

  click(event) {
    const index = this.lineAt(event);
    const line = this.lines[index];
    if (!line) return;
    if (line.unfold) return line.unfold();
    const type = event.target.closest(".has-layout");
    if (type && this.onType) return this.onType(Number(type.dataset.type), line);
    this.pin(index);
  }

  pin(index) {
    const line = this.lines[index];
    this.here = index;
    const again = LINKED.pinned?.from === this && LINKED.pinned.index === index;
    link("pinned", again || !line.keys.length ? null : { ...this.linkOf(line), index });
    this.draw(true);
  }

  key(event) {
    const page = Math.floor(this.node.clientHeight / LINE) - 2;
    const start = this.here < 0 ? Math.ceil(this.node.scrollTop / LINE) : this.here;
    const moves = { ArrowDown: start + (this.here >= 0), ArrowUp: start - 1, PageDown: start + page, PageUp: start - page, Home: 0, End: this.lines.length - 1 };
    if (event.key in moves) this.go(moves[event.key]);
    else if ((event.key === "Enter" || event.key === " ") && this.here >= 0) this.lines[this.here].unfold ? this.lines[this.here].unfold() : this.pin(this.here);
    else return;
    event.preventDefault();
    const line = this.lines[this.here];
    if (event.key in moves) link("hover", line?.keys.length ? this.linkOf(line) : null);
  }

  search(pattern) { this.pattern = pattern; this.draw(true); }
}

function found(text, pattern) {
  const ranges = [];
  const lower = text.toLowerCase();
  for (let at = lower.indexOf(pattern); at >= 0; at = lower.indexOf(pattern, at + pattern.length)) ranges.push([at, at + pattern.length]);
  return ranges;
}

listeners.add((kind) => { for (const view of views) view.linked(kind); });
const codeLines = (rows) => rows.map((row, index) => ({ text: textOf(row), keys: keysOf(row), number: index + 1 }));
// The lines of a difference, with those folded that are far from every change.
const AROUND = 3; // lines around a change

function foldedDiff(diff, whole, unfold) {
  const near = new Uint8Array(diff.length);
  diff.forEach((line, index) => {
    if (line.sign !== " ") near.fill(1, Math.max(0, index - AROUND), index + AROUND + 1);
  });
  const lines = [];
  let number = 0;
  for (let index = 0; index < diff.length; index++) {
    const { row, sign } = diff[index];
    if (whole || near[index]) {
      if (sign !== "-") number++;
      lines.push({ text: textOf(row), keys: keysOf(row), sign, number: sign === "-" ? "" : number, kind: { "+": "add", "-": "del" }[sign] });
      continue;
    }
    let end = index;
    while (end < diff.length && !near[end]) end++;
    lines.push({ text: `  ⋯ ${plural(end - index, "line")} ${end - index === 1 ? "stays" : "stay"} the same`, keys: [], kind: "fold", number: "", unfold });
    number += end - index;
    index = end - 1;
  }
  return lines;
}
