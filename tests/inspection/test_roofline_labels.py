"""The roofline of the profiler's page: no label covers another one, or a point, however close the kernels are."""

import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.inspection.browser import Browser, find_chromium
from tilework.inspect.profiler.labels import HEIGHT, Box, FreeSpace, around, line_boxes, width_of
from tilework.inspect.profiler.page import LONGEST, page, roofline
from tilework.inspect.profiler.report import Report, Row, Statistics

NAMES = ("add", "softmax", "matmul_kernel", "layer_norm_forward", "triton_poi_fused_add_mul_view_3")


def report(rows: list[Row], rates: dict[str, float] | None = None) -> Report:
    root = Row("all kernels", (), sum(row.seconds for row in rows), len(rows), children=rows)
    return Report(root, "p.py", "cuda:90", 1.0, [], 4e12, {"fp32": 6e13, "fp16": 9e14} if rates is None else rates)


def kernel(name: str, intensity: float, rate: float, seconds: float = 1e-3) -> Row:
    """A kernel at a point of the roofline."""
    flops = rate * seconds
    return Row(name, (name,), seconds, 1, bytes=flops / intensity, flops={"fp16": flops}, device_type="CUDA")


CASES: dict[str, list[Row]] = {
    "one": [kernel("matmul", 100, 5e14)],
    "at one point": [kernel(name, 30.0, 1e14) for name in NAMES],
    "in a row": [kernel(name, 10.0 * 1.05**n, 2e13 * 1.04**n) for n, name in enumerate(NAMES * 3)],
    "under the roofs' labels": [kernel(name, 5000.0 - 300 * n, 8.5e14 - 1e13 * n, 0.1) for n, name in enumerate(NAMES)],
    "on the slope": [kernel(name, 0.5 * 1.3**n, 2e12 * 1.3**n, 0.01 * n + 1e-3) for n, name in enumerate(NAMES * 2)],
}
RATES = {"fp32": 6e13, "tf32": 6.6e13, "fp16": 9e14, "bf16": 9.1e14, "fp8": 1.7e15}


def parts(picture: str) -> tuple[list[Box], list[Box]]:
    """The boxes of labels, and those of points."""
    labels = []
    for kind, x, y, name in re.findall(r'class="label([^"]*)" x="([\d.]+)" y="([\d.]+)">([^<]*)', picture):
        width = width_of(name)
        left = float(x) - {"": 0.0, " middle": width / 2, " end": width}[kind]
        labels.append(Box(left, float(y) + 3 - HEIGHT, left + width, float(y) + 3))
    circles = [map(float, one) for one in re.findall(r'cx="([\d.]+)" cy="([\d.]+)" r="([\d.]+)"', picture)]
    return labels, [Box(x - r, y - r, x + r, y + r) for x, y, r in circles]


@pytest.mark.parametrize("rates", [{"fp32": 6e13, "fp16": 9e14}, RATES], ids=["2", "5"])
@pytest.mark.parametrize("rows", CASES.values(), ids=CASES)
def test_no_label_covers_another_one_or_a_point(rows: list[Row], rates: dict[str, float]) -> None:
    picture = roofline(report(rows, rates), {row.name: 0 for row in rows})
    labels, points = parts(picture)
    assert len(points) == len(rows) and len(labels) == len(rows) + len(rates) + 1, "every label has a place"
    shrunk = [Box(box.left + 0.2, box.top + 0.2, box.right - 0.2, box.bottom - 0.2) for box in labels]  # rounded
    assert not [pair for pair in combinations(shrunk, 2) if pair[0].overlaps(pair[1])]
    assert not [(box, point) for box in shrunk for point in points if box.overlaps(point)]
    assert all(box.left >= 0 and box.right <= 1000 and box.top >= 0 and box.bottom <= 380 for box in labels)


def test_without_room_a_label_is_left_out_and_counted() -> None:
    rows = [kernel(f"a_kernel_with_a_long_name_{n:02}", 30.0, 1e14) for n in range(200)]
    picture = roofline(report(rows), {row.name: 0 for row in rows})
    missing = re.search(r"(\d+) of the points have no label", picture)
    assert missing and 0 < int(missing[1]) < 190 and picture.count("<circle") == 200
    long = "x" * 100
    assert f">{'x' * (LONGEST - 1)}…<" in roofline(report([kernel(long, 30.0, 1e14)]), {long: 0})


def test_a_label_crosses_a_line_only_where_it_must() -> None:
    def placed(lines: list[Box]) -> Any:
        free = FreeSpace(Box(0, 0, 200, 100))
        free.avoid(lines)
        return free.place(around(50, 50, 5, 40), 40)

    assert placed([]).left > 50, "right of the point"
    beside = placed(list(line_boxes(70, 0, 70, 100)))
    assert beside.right < 70
    everywhere = [box for y in range(0, 100, 5) for box in line_boxes(0, y, 200, y)]
    assert placed(everywhere) == placed([])


@pytest.mark.skipif(find_chromium() is None, reason="there is no Chromium")
def test_labels_are_as_wide_as_their_boxes_at_most(tmp_path: Path) -> None:
    """The browser's fonts: texts do not overlap there either."""
    rows = CASES["at one point"] + CASES["in a row"]
    statistics = Statistics()
    (tmp_path / "page.html").write_text(
        page(report(rows, RATES), statistics).replace("<script>", "<script>document.documentElement.dataset.ready='';")
    )
    with Browser(tmp_path, (1280, 900)) as browser:
        browser.open((tmp_path / "page.html").as_uri())
        boxes = browser.evaluate(
            "['.label', 'circle'].map(name => [...document.querySelectorAll(name)].map(e => { const b = e.getBBox();"
            " return [b.x + 1, b.y + 1, b.x + b.width - 1, b.y + b.height - 1]; }))"
        )
    labels, points = ([Box(*box) for box in found] for found in boxes)
    assert len(labels) == len(rows) + len(RATES) + 1 and len(points) == len(rows)
    assert not [pair for pair in combinations(labels, 2) if pair[0].overlaps(pair[1])]
    assert not [(label, point) for label in labels for point in points if label.overlaps(point)]
