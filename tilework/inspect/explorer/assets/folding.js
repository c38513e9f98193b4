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
