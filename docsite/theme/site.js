"use strict";
// Light and dark, the list of pages on small screens, copying code, the mark of where one is, the search.

const base = document.body.dataset.base;

const root = document.documentElement;

// Pictures follow the theme that was chosen, not that of the system.
function themePictures() {
  if (!root.dataset.theme) return;
  for (const dark of document.querySelectorAll("picture source")) dark.media = root.dataset.theme === "dark" ? "all" : "not all";
}
themePictures();

document.getElementById("theme").addEventListener("click", () => {
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  themePictures();
  try { localStorage.setItem("theme", root.dataset.theme); } catch { /* pages of a folder may keep nothing */ }
});

document.getElementById("menu")?.addEventListener("click", event => {
  event.target.setAttribute("aria-expanded", document.body.classList.toggle("menu"));
});

for (const block of document.querySelectorAll("main:not(.listing) .code")) {
  if (!navigator.clipboard) break;
  const button = Object.assign(document.createElement("button"), { className: "copy", textContent: "copy" });
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.querySelector("pre").innerText);
    button.textContent = "copied";
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  });
  block.append(button);
}

// The list of pages scrolls to the current one; `scrollIntoView` would scroll the page as well.
const current = document.querySelector("nav.pages [aria-current]"), pages = current?.closest("nav");
if (pages) pages.scrollTop += current.getBoundingClientRect().top - pages.getBoundingClientRect().top - pages.clientHeight / 2;

const entries = [...document.querySelectorAll("nav.toc a, nav .here-only a")].map(link => [decodeURIComponent(link.hash.slice(1)), link]);
const headings = [...new Set(entries.map(([id]) => id))].map(id => document.getElementById(id)).filter(Boolean);
if (headings.length) {
  const mark = () => {
    const passed = headings.filter(heading => heading.getBoundingClientRect().top < 120);
    const here = (passed.at(-1) ?? headings[0]).id;
    for (const [id, link] of entries) link.classList.toggle("here", id === here);
  };
  addEventListener("scroll", mark, { passive: true });
  mark();
}

const field = document.getElementById("search");
const list = document.getElementById("found");
let index = null;

function loaded() {
  index ??= new Promise((done, failed) => {
    const script = Object.assign(document.createElement("script"), { src: `${base}search_index.js`, onerror: failed });
    script.onload = () => done(SEARCH_INDEX.map(([path, title, text]) => ({ path, title, text, low: `${title}\n${text}`.toLowerCase(), name: title.toLowerCase() })));
    document.head.append(script);
  });
  return index;
}

// Where a word is in a text, and how well: 3 as a whole word, 2 at the start of a longer word, 1 inside of a longer word.
function occurrence(text, word) {
  const escaped = word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  for (const [quality, pattern] of [[3, `(?<![\\w])${escaped}(?![\\w])`], [2, `(?<![\\w])${escaped}`], [1, escaped]]) {
    const at = text.search(new RegExp(pattern));
    if (at >= 0) return [quality, at];
  }
  return [0, -1];
}

function score(row, words) {
  let sum = 0;
  for (const word of words) {
    if (!row.low.includes(word)) return 0;
    const [inName] = occurrence(row.name, word), [inText, at] = occurrence(row.text.toLowerCase(), word);
    if (row.name === word || row.name.endsWith(`.${word}`)) sum += 100;
    sum += [0, 10, 25, 60][inName] + [0, 1, 5, 40][inText] + (inText ? 3 / (1 + at / 200) : 0);
  }
  return sum + (row.path.includes("#") ? 0 : 0.5);
}

function excerpt(row, words) {
  const low = row.text.toLowerCase();
  const at = Math.max(0, Math.min(...words.map(word => occurrence(low, word)[1]).filter(at => at >= 0), low.length) - 40);
  return (at > 0 ? "… " : "") + row.text.slice(at, at + 160).replace(/\s+/g, " ");
}

async function search() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  list.hidden = words.length === 0;
  if (list.hidden) return;
  const rows = (await loaded()).map(row => [score(row, words), row]).filter(([points]) => points > 0);
  rows.sort((a, b) => b[0] - a[0]);
  list.replaceChildren(...rows.slice(0, 12).map(([, row], rank) => {
    const link = Object.assign(document.createElement("a"), { href: base + row.path, className: rank ? "" : "chosen" });
    link.append(row.title, Object.assign(document.createElement("small"), { textContent: excerpt(row, words) }));
    const item = document.createElement("li");
    item.append(link);
    return item;
  }));
  if (!rows.length) list.append(Object.assign(document.createElement("li"), { className: "none", textContent: "Nothing found" }));
}

function move(step) {
  const links = [...list.querySelectorAll("a")];
  const at = links.findIndex(link => link.classList.contains("chosen"));
  links[at]?.classList.remove("chosen");
  const next = links[(at + step + links.length) % links.length];
  next?.classList.add("chosen");
  next?.scrollIntoView({ block: "nearest" });
}

if (field) {
  field.addEventListener("input", search);
  field.addEventListener("focus", loaded);
  field.addEventListener("keydown", event => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); move(event.key === "ArrowDown" ? 1 : -1); }
    else if (event.key === "Enter") list.querySelector("a.chosen")?.click();
    else if (event.key === "Escape") { field.value = ""; list.hidden = true; field.blur(); }
  });
  document.addEventListener("click", event => { if (!event.target.closest(".search")) list.hidden = true; });
  document.addEventListener("keydown", event => {
    if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) { event.preventDefault(); field.focus(); }
  });
}

document.documentElement.dataset.ready = "";
