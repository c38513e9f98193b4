// Layouts as pictures: which threads hold each element of a tensor, what each thread holds, the bank of shared memory of each element.
// A layout is linear: the index of an element is the exclusive or of the bases of the bits that are set in its register, lane, warp and block.
const BANKS = 32;
const CELLS = 1 << 17; // that are drawn

class Layout {
  constructor(data) {
    Object.assign(this, data);
    this.isShared = "offset" in data.bases;
    this.sizes = Object.fromEntries(Object.entries(data.bases).map(([name, bases]) => [name, 2 ** bases.length]));
    this.ends = (data.seen ?? [])[0] ?? this.shape; // what is behind them is padding
  }
  isPadding(flat) { return this.ends !== this.shape && coordinates(this, flat).some((part, dim) => part >= this.ends[dim]); }
  seenCell(flat, cell) {
    // as it is drawn: grey and empty where it is padding
    return this.isPadding(flat) ? { ...cell, colour: paddingColour(), group: -2, text: "", tip: `padding, which no program sees\n${cell.tip}` } : cell;
  }
  vector(name, value) {
    // the index of the element at one value of an input, as a vector
    const at = this.shape.map(() => 0);
    this.bases[name].forEach((basis, bit) => { if ((value >> bit) & 1) basis.forEach((part, dim) => { at[dim] ^= part; }); });
    return at;
  }
  flat(at) { return at.reduce((sum, part, dim) => sum * this.shape[dim] + part, 0); }
  images(name) {
    // the elements at all values of an input, as flat indices; exclusive or works on those, since sizes are powers of two
    return Array.from({ length: this.sizes[name] ?? 1 }, (_, value) => (this.bases[name] ? this.flat(this.vector(name, value)) : 0));
  }
  get owners() {
    // for each element, the threads and registers that hold it: [block, warp, lane, register] in one number each
    if (this._owners) return this._owners;
    const count = this.shape.reduce((a, b) => a * b, 1);
    const owners = Array.from({ length: count }, () => []);
    const [blocks, warps, lanes, registers] = ["block", "warp", "lane", "register"].map((name) => this.images(name));
    blocks.forEach((a, block) => warps.forEach((b, warp) => lanes.forEach((c, lane) => registers.forEach((d, register) => owners[a ^ b ^ c ^ d].push([block, warp, lane, register])))));
    this._owners = owners;
    return owners;
  }
  thread([, warp, lane]) { return warp * (this.sizes.lane ?? 1) + lane; }
  colour(warp, lane) {
    // each warp has its part of the colour wheel; neighbouring lanes also differ in lightness
    const { warp: warps = 1, lane: lanes = 1 } = this.sizes;
    return `hsl(${(360 * (warp + (0.82 * lane) / lanes)) / warps} ${(isDark() ? 52 : 72) - 12 * (lane % 2)}% ${(isDark() ? 55 : 83) - 11 * ((lane >> 1) % 2)}%)`;
  }
}
const isDark = () => getComputedStyle(document.documentElement).colorScheme === "dark";
const bankColour = (bank) => `hsl(${(360 * bank) / BANKS} ${isDark() ? 45 : 65}% ${(isDark() ? 52 : 82) - 9 * (bank % 2)}%)`;
const paddingColour = () => (isDark() ? "#39404d" : "#e4e4e4");
const coordinates = (layout, flat) => {
  const at = [];
  for (let dim = layout.shape.length - 1; dim >= 0; dim--) { at.unshift(flat % layout.shape[dim]); flat = Math.floor(flat / layout.shape[dim]); }
  return at;
};

// What is drawn: a grid of cells {colour, text, tip, group, thread}.
function tensorGrid(layout) {
  const columns = layout.shape.length > 1 ? layout.shape.at(-1) : Math.min(32, layout.shape[0] ?? 1);
  const rows = layout.owners.length / columns;
  return { columns, rows, cell: (row, column) => {
    const flat = row * columns + column;
    const held = layout.owners[flat];
    if (!held.length) return { colour: "transparent", text: "", tip: "no thread holds it", group: -1, thread: -1 };
    const [block, warp, lane, register] = held[0];
    const owners = held.slice(0, 8).map((one) => `T${layout.thread(one)} (warp ${one[1]}, lane ${one[2]}), register ${one[3]}${layout.sizes.block > 1 ? `, block ${one[0]}` : ""}`);
    return layout.seenCell(flat, {
      colour: layout.colour(warp, lane), text: `T${layout.thread(held[0])}:${register}`, group: block * (layout.sizes.warp ?? 1) + warp, thread: layout.thread(held[0]),
      tip: `[${coordinates(layout, flat).join(", ")}]\n${owners.join("\n")}${held.length > 8 ? `\nand ${held.length - 8} more` : ""}`,
    });
  } };
}
function threadGrid(layout) {
  const [blocks, warps, lanes, registers] = ["block", "warp", "lane", "register"].map((name) => layout.images(name));
  const columns = lanes.length;
  return { columns, rows: warps.length * registers.length, heading: (row) => (row % registers.length === 0 ? `warp ${Math.floor(row / registers.length)}` : ""), cell: (row, lane) => {
    const [warp, register] = [Math.floor(row / registers.length), row % registers.length];
    const flat = blocks[0] ^ warps[warp] ^ lanes[lane] ^ registers[register];
    return layout.seenCell(flat, { colour: layout.colour(warp, lane), text: coordinates(layout, flat).join(","), group: warp, thread: warp * columns + lane, tip: `T${warp * columns + lane}, register ${register}: [${coordinates(layout, flat).join(", ")}]` });
  } };
}
const bankOf = (layout, offset) => Math.floor((offset * layout.bits) / 32) % BANKS;
function bankCell(layout, offset, flat) {
  const at = coordinates(layout, flat).join(", ");
  const bank = bankOf(layout, offset);
  return { colour: bankColour(bank), group: 0, thread: bank, tip: `element [${at}]\noffset ${offset} (byte ${(offset * layout.bits) / 8}), bank ${bank}`, at, bank };
}
function addressGrid(layout) {
  // the bytes of memory in order: a row is 128 bytes
  const offsets = layout.images("offset");
  const columns = Math.max(1, Math.min(offsets.length, (BANKS * 32) / layout.bits));
  return { columns, rows: Math.ceil(offsets.length / columns), cell: (row, column) => {
    const offset = row * columns + column;
    const cell = bankCell(layout, offset, offsets[offset]);
    return layout.seenCell(offsets[offset], { ...cell, text: cell.at.replace(" ", "") });
  } };
}
function bankGrid(layout) {
  // the tensor, and the bank of each element
  const columns = layout.shape.length > 1 ? layout.shape.at(-1) : Math.min(32, layout.shape[0] ?? 1);
  const offsets = [];
  layout.images("offset").forEach((flat, offset) => { offsets[flat] ??= offset; });
  return { columns, rows: offsets.length / columns, cell: (row, column) => {
    const flat = row * columns + column;
    const cell = bankCell(layout, offsets[flat], flat);
    return layout.seenCell(flat, { ...cell, text: `b${cell.bank}` });
  } };
}
const GRIDS = { tensor: tensorGrid, threads: threadGrid, banks: bankGrid, addresses: addressGrid };
const MODES = { false: [["tensor", "by element"], ["threads", "by thread"]], true: [["banks", "by element"], ["addresses", "by address"]] };

class LayoutsView {
  constructor(app, kernel) {
    Object.assign(this, { app, kernel, mode: "tensor", zoom: 0, pointed: -1, chosen: 0 });
    this.types = app.types(kernel);
    if (!this.types.list.length) {
      this.node = el("div", { class: "note" }, kernel.target === "cpu"
        ? "Code for the CPU has no layouts: a tile is a buffer, row after row, and loops go over it. Explore the kernel for a GPU, as --target cuda:90, to see which thread holds each element."
        : "No value of this kernel has a layout.");
      return;
    }
    this.list = el("nav", { class: "list", "aria-label": "layouts" });
    this.buttons = [];
    for (const [words, isShared] of [["in registers", false], ["in shared memory", true]]) {
      const some = this.types.list.filter((entry) => "offset" in entry.data.bases === isShared).sort((a, b) => !a.values.length - !b.values.length);
      if (some.length) this.list.append(el("h3", {}, words));
      for (const entry of some) {
        const names = entry.values.length ? entry.values.slice(0, 4).join(" ") + (entry.values.length > 4 ? ` +${entry.values.length - 4}` : "") : "between passes";
        const button = el("button", { class: entry.values.length ? "" : "same", title: entry.type, onclick: () => this.show(entry.index) },
          el("span", { class: "name mono" }, names), el("span", { class: "ms" }, entry.label));
        this.buttons[entry.index] = button;
        this.list.append(button);
      }
    }
    this.encoding = el("div", { class: "encoding mono" });
    this.tools = el("div", { class: "tools" });
    this.canvas = el("canvas", { tabIndex: 0, role: "img" });
    this.picture = el("div", { class: "picture" }, this.canvas);
    this.legend = el("div", { class: "legend" });
    this.canvas.addEventListener("mousemove", (event) => this.point(event));
    this.canvas.addEventListener("mouseleave", () => { hideTip(); this.point(null); });
    this.node = el("div", { class: "split" }, this.list, el("div", { class: "detail" }, this.tools, this.encoding, this.picture, this.legend));
    this.themed = () => this.draw();
    document.addEventListener("themed", this.themed);
    this.sized = new ResizeObserver(() => this.draw());
    this.sized.observe(this.picture);
    this.show((this.types.list.find((entry) => entry.values.length && entry.data.shape.length > 1) ?? this.types.list[0]).index);
  }

  show(index) {
    this.chosen = index;
    const entry = this.types.list[index];
    this.layout = entry.layout ??= new Layout(entry.data);
    const modes = MODES[this.layout.isShared];
    if (!modes.some(([mode]) => mode === this.mode)) this.mode = modes[0][0];
    this.buttons.forEach((button, at) => button.setAttribute("aria-current", String(at === index)));
    this.buttons[index].scrollIntoView({ block: "nearest" });
    const { shape, sizes, bits, isShared } = this.layout;
    const words = isShared ? `${shape.join(" × ")}, ${bits} bits each` : `${shape.join(" × ")} on ${plural(sizes.warp ?? 1, "warp")} × ${plural(sizes.lane ?? 1, "lane")} × ${plural(sizes.register ?? 1, "register")}`;
    const seen = (entry.data.seen ?? []).map((sizes) => [sizes, `${sizes.join(" × ")} seen`]);
    const choice = seg("how much of it is seen", seen, this.layout.ends, (sizes) => { this.layout.ends = sizes; this.draw(); });
    fill(this.tools, el("strong", {}, words), seen.length > 1 ? choice : el("span", {}, seen[0]?.[1] ?? ""), el("span", { class: "grow" }),
      seg("what a cell is", modes, this.mode, (mode) => { this.mode = mode; this.draw(); }),
      el("label", {}, "zoom", el("input", { type: "range", min: 0, max: 6, step: 1, value: this.zoom, "aria-label": "zoom", oninput: (event) => { this.zoom = Number(event.target.value); this.draw(); } })));
    this.encoding.textContent = entry.data.encoding;
    this.explain();
    this.draw();
  }

  explain() {
    const { layout } = this;
    const strip = (colours) => el("span", { class: "strip", style: `background:linear-gradient(90deg, ${colours.join(",")})` });
    const parts = [];
    if (layout.isShared) {
      parts.push(el("span", {}, strip(Array.from({ length: BANKS }, (_, bank) => bankColour(bank))), "bank 0 to 31, each 4 bytes wide"));
      for (const [name, single, wide] of layout.conflicts ?? []) {
        const words = (more) => (more === null ? "not possible" : more ? `${more} more wavefronts` : "no conflict");
        parts.push(el("span", {}, `a warp reads a ${name}: ${words(single)} (one element a lane), ${words(wide)} (16 bytes a lane)`));
      }
    } else {
      const { warp: warps = 1, lane: lanes = 1 } = layout.sizes;
      for (let warp = 0; warp < Math.min(warps, 8); warp++) parts.push(el("span", {}, strip(Array.from({ length: lanes }, (_, lane) => layout.colour(warp, lane))), `warp ${warp}`));
      const copies = layout.owners.length ? Math.max(...layout.owners.map((held) => held.length)) : 1;
      if (copies > 1) parts.push(el("span", {}, `each element is held ${copies} times`));
    }
    if (layout.seen) parts.push(el("span", {}, strip([paddingColour(), paddingColour()]), "padding, which no program sees"));
    this.legend.replaceChildren(...parts);
  }

  draw() {
    const grid = (this.grid = GRIDS[this.mode](this.layout));
    const room = Math.max(200, this.picture.clientWidth - 30) - 36;
    const fit = Math.max(3, Math.min(46, Math.floor(room / grid.columns)));
    const width = (this.width = Math.min(64, Math.max(fit, [0, 6, 12, 20, 32, 46, 64][this.zoom])));
    const height = (this.height = Math.max(3, Math.min(width, 24)));
    const rows = (this.drawn = Math.min(grid.rows, Math.max(1, Math.floor(Math.min(CELLS / grid.columns, 16000 / height)))));
    const ratio = Math.min(devicePixelRatio || 1, 16000 / (grid.columns * width + 40));
    const [wide, high] = [grid.columns * width + 37, rows * height + 19];
    Object.assign(this.canvas, { width: wide * ratio, height: high * ratio });
    this.canvas.style.cssText = `width:${wide}px;height:${high}px`;
    this.canvas.setAttribute("aria-label", `picture of a layout, ${grid.rows} rows of ${grid.columns}`);
    const ink = getComputedStyle(document.documentElement).getPropertyValue("--ink");
    const faint = getComputedStyle(document.documentElement).getPropertyValue("--ink-3");
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.translate(36, 18);
    pen.textBaseline = "middle";
    pen.textAlign = "center";
    const cells = [];
    for (let row = 0; row < rows; row++) {
      cells.push(Array.from({ length: grid.columns }, (_, column) => grid.cell(row, column)));
      for (let column = 0; column < grid.columns; column++) {
        const cell = cells[row][column];
        const lit = this.pointed >= 0 && cell.thread === this.pointed;
        pen.fillStyle = lit ? ink : cell.colour;
        pen.fillRect(column * width, row * height, width - (width > 6), height - (height > 6));
        if (width >= 30 && height >= 12) {
          pen.font = `${Math.max(7, Math.min(11, (1.55 * (width - 4)) / cell.text.length))}px ui-monospace, monospace`;
          pen.fillStyle = lit ? cell.colour : ink;
          pen.fillText(cell.text, column * width + (width - 1) / 2, row * height + height / 2);
        }
      }
    }
    pen.fillStyle = ink;
    for (let row = 0; row < rows; row++) for (let column = 0; column < grid.columns; column++) {
      if (column && cells[row][column].group !== cells[row][column - 1].group) pen.fillRect(column * width - 1.5, row * height, 2, height);
      if (row && cells[row][column].group !== cells[row - 1][column].group) pen.fillRect(column * width, row * height - 1.5, width, 2);
    }
    pen.fillStyle = faint;
    pen.font = "10px system-ui, sans-serif";
    const step = (size) => [1, 2, 4, 8, 16, 32, 64, 128].find((each) => each * size >= 26) ?? 256;
    for (let column = 0; column < grid.columns; column += step(width)) pen.fillText(String(column), (column + 0.5) * width, -9);
    pen.textAlign = "right";
    for (let row = 0; row < rows; row += grid.heading ? 1 : Math.max(1, step(height * 1.6))) {
      const words = grid.heading ? grid.heading(row) : String(this.mode === "addresses" || this.layout.shape.length === 1 ? row * grid.columns : row);
      pen.fillText(words, -5, (row + 0.5) * height);
    }
    if (rows < grid.rows) this.legend.append(el("span", { class: "warn" }, `the first ${rows} of ${grid.rows} rows are drawn`));
  }

  point(event) {
    let thread = -1;
    if (event) {
      const box = this.canvas.getBoundingClientRect();
      const [column, row] = [Math.floor((event.clientX - box.left - 36) / this.width), Math.floor((event.clientY - box.top - 18) / this.height)];
      if (column >= 0 && row >= 0 && column < this.grid.columns && row < this.drawn) {
        const cell = this.grid.cell(row, column);
        thread = cell.thread;
        showTip(cell.tip, event.clientX, event.clientY);
      } else hideTip();
    }
    if (thread !== this.pointed) { this.pointed = thread; this.draw(); }
  }
  close() { if (this.sized) { this.sized.disconnect(); document.removeEventListener("themed", this.themed); } }
}
