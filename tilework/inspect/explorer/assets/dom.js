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
