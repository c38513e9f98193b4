// The data of the page, and what follows from them. A text is a list of rows; a row has a string and a place, which is a list of
// [file, line]: the first is where its own code stands, the others are the calls that led there. A line of the source is one number, its key.
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
const KEYS = DOC.places.map((place) => place.map(([file, line]) => keyOf(file, line)));
const textOf = (row) => DOC.strings[DOC.rowStrings[row]];
const keysOf = (row) => KEYS[DOC.rowPlaces[row]];
const hueOf = (key) => (lineOf(key) * 47 + fileOf(key) * 131) % 360;
const placeName = (key) => `${DOC.files[fileOf(key)].label}:${lineOf(key)}`;

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

// The lines of a diff: {row, sign}; sign is " ", "+" or "-". Rows that differ only in their place count as the same.
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
