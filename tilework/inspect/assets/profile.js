// Zoom into the icicle chart, and sort the table. Without scripts the page shows the same, as it was drawn.
const boxes = [...document.querySelectorAll("#icicle .box")].map((g) => ({
  g, rect: g.querySelector("rect"), text: g.querySelector("text"),
  x: +g.dataset.x, w: +g.dataset.w, name: g.dataset.name,
}));
const whole = 1000;

function zoom(left, width) {
  const scale = whole / width;
  for (const box of boxes) {
    const start = Math.max(box.x, left), end = Math.min(box.x + box.w, left + width);
    const shown = end - start > 1e-6;
    box.g.style.display = shown ? "" : "none";
    if (!shown) continue;
    const x = (start - left) * scale, w = (end - start) * scale;
    box.rect.setAttribute("x", x);
    box.rect.setAttribute("width", Math.max(w - 1, 0.3));
    box.text.setAttribute("x", x + 5);
    box.text.textContent = w > 7.5 * box.name.length + 8 ? box.name : "";
  }
}
for (const box of boxes) box.g.addEventListener("click", () => zoom(box.x, Math.max(box.w, 1e-3)));

const value = (text) => {
  const number = parseFloat(text.replace(/[~*!]/g, ""));
  return Number.isNaN(number) ? -Infinity : number;
};
document.querySelectorAll("th").forEach((head, column) => {
  let down = true;
  head.addEventListener("click", () => {
    const body = head.closest("table").tBodies[0];
    const rows = [...body.rows];
    const cell = (row) => row.cells[column].textContent;
    const words = column < 2;
    rows.sort((a, b) => (words ? cell(b).localeCompare(cell(a)) : value(cell(b)) - value(cell(a))) * (down ? 1 : -1));
    down = !down;
    body.append(...rows);
  });
});
document.documentElement.dataset.ready = "";
