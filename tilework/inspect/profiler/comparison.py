"""Compare two profiles, kernel by kernel: `tilework profile --compare before.json after.json`.

    a: softmax.py: 1.204 s, cpu, Neoverse-N1, 2 threads
    b: softmax.py: 0.911 s, cpu, Neoverse-N1, 2 threads

     a ms    b ms  change ms  a calls  b calls    a us    b us    b/a
    812.4   519.0     -293.4      512      512  1586.7  1013.7   0.64  softmax
    ...
    in all kernels b takes 0.72 times as long as a

Launches count by kernel and signature, whatever scope they are in; configurations that an autotuner times are apart.
Where the signatures of a kernel differ, as after a change of a block size, what is left of it on both sides is one row.
`b/a` is the ratio of the times per call, for all kernels that of the times. Times of two runs differ by chance, too: a
ratio within `NOISE` is marked.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tilework.inspect.profiler.saved import SavedKernel, SavedProfile

NOISE = 0.05  # of a ratio, where nothing says more
COLUMNS = ("a ms", "b ms", "change ms", "a calls", "b calls", "a us", "b us", "b/a")
WIDTH = 9


@dataclass(frozen=True)
class Side:
    """The launches of a row in one of the profiles."""

    calls: int = 0
    seconds: float = 0.0
    signatures: tuple[str, ...] = ()

    @classmethod
    def of(cls, kernels: Sequence[SavedKernel]) -> "Side":
        return cls(
            sum(one.calls for one in kernels),
            sum(one.seconds for one in kernels),
            tuple(sorted({one.signature for one in kernels if one.signature})),
        )

    @property
    def each(self) -> float | None:
        """Seconds of one launch."""
        return self.seconds / self.calls if self.calls else None


@dataclass(frozen=True)
class KernelChange:
    """One kernel, before and after."""

    name: str
    a: Side
    b: Side
    is_tuning: bool = False

    @property
    def ratio(self) -> float | None:
        """The time per call after, by that before."""
        return self.b.each / self.a.each if self.a.each and self.b.each else None

    @property
    def change(self) -> float:
        return self.b.seconds - self.a.seconds

    @property
    def kind(self) -> str:
        if not self.a.calls or not self.b.calls:
            return "gone" if self.a.calls else "new"
        return (
            "same" if self.ratio is None or abs(self.ratio - 1) <= NOISE else "slower" if self.ratio > 1 else "faster"
        )

    @property
    def notes(self) -> list[str]:
        """Return the differences of the two kernels besides the times."""
        if self.kind in ("new", "gone"):
            return [f"only in {'a' if self.a.calls else 'b'}"]
        if self.a.signatures == self.b.signatures or not self.a.signatures or not self.b.signatures:
            return []
        return [f"compiled otherwise: {'; '.join(differing(*self.signatures))}"]

    @property
    def signatures(self) -> tuple[str, str]:
        return " | ".join(self.a.signatures), " | ".join(self.b.signatures)


def differing(a: str, b: str) -> list[str]:
    """Return the parameters that differ, ``BLOCK=64 -> BLOCK=128``; both signatures if they have other parameters."""
    sides = [text.replace("; ", ", ").split(", ") for text in (a, b)]
    if " | " in a + b or len(sides[0]) != len(sides[1]):
        return [f"a: {a}", f"b: {b}"]
    return [f"{one} -> {other}" for one, other in zip(*sides, strict=True) if one != other]


@dataclass(frozen=True)
class ProfileComparison:
    """Two profiles, and a row for each kernel, the largest change of time first."""

    a: SavedProfile
    b: SavedProfile
    rows: Sequence[KernelChange]

    @property
    def totals(self) -> tuple[float, float]:
        """The seconds of all kernels."""
        return sum(row.a.seconds for row in self.rows), sum(row.b.seconds for row in self.rows)


def compare(a: SavedProfile, b: SavedProfile) -> ProfileComparison:
    """Match the kernels of two profiles: by name and signature, then what is left of a name."""
    rows: list[KernelChange] = []
    left = [list(a.kernels), list(b.kernels)]

    def match(key: Callable[[SavedKernel], object], *, alone: bool) -> None:
        keys = dict.fromkeys(key(one) for side in left for one in side)
        for wanted in keys:
            found = [[one for one in side if key(one) == wanted] for side in left]
            if alone or all(found):
                first = (found[0] or found[1])[0]
                rows.append(KernelChange(first.name, Side.of(found[0]), Side.of(found[1]), first.is_tuning))
                for side, taken in zip(left, found, strict=True):
                    side[:] = [one for one in side if one not in taken]

    match(lambda one: (one.name, one.is_tuning, one.signature), alone=False)
    match(lambda one: (one.name, one.is_tuning), alone=True)
    return ProfileComparison(a, b, sorted(rows, key=lambda row: -abs(row.change)))


# ---- as text


def text_of(found: ProfileComparison, most: int = 40) -> str:
    """Return the comparison as text for a terminal."""
    lines = [*(f"{side}: {title(profile)}" for side, profile in (("a", found.a), ("b", found.b)))]
    lines += [*(f"note: {note}" for note in notes_of(found)), ""]
    if found.rows:
        lines += [line_of(COLUMNS, ""), line_of(totals_of(found), "all kernels")]
        for row in found.rows[:most]:
            lines.append(line_of(cells_of(row), name_of(row)))
            lines += [
                f"{'':{(WIDTH + 2) * len(COLUMNS) + 4}}{note}" for note in row.notes if row.kind not in ("new", "gone")
            ]
        if len(found.rows) > most:
            lines.append(f"  ... and {len(found.rows) - most} more, which changed less; --top N shows more of them")
        lines.append("")
    return "\n".join([*lines, *verdict(found)])


def line_of(cells: Sequence[str], name: str) -> str:
    return f"  {'  '.join(f'{cell:>{WIDTH}}' for cell in cells)}  {name}".rstrip()


def title(profile: SavedProfile) -> str:
    """Program, time and machine of a profile."""
    whole = "" if profile.seconds is None else f": {profile.seconds:.3f} s"
    compiled = ""
    if profile.compiling:
        compiled = f", {profile.compiling * 1e3:.0f} ms of them compiling"
    return f"{profile.program}{whole}{compiled}; {profile.device or 'an unknown machine'}"


def notes_of(found: ProfileComparison) -> Iterator[str]:
    """Yield the reasons why the times of two profiles are hard to compare."""
    a, b = found.a, found.b
    if not (a.tilework and b.tilework):
        yield "a .hatchet file has no signatures, and does not say which machine it is of"
    elif a.device != b.device:
        yield "the machines differ, so ratios are those of machine and code together"
    if not (a.is_real and b.is_real):
        yield "an emulated device counts steps, which are no times"
    if a.program != b.program:
        yield "the programs differ"
    if a.tilework and b.tilework and a.tilework != b.tilework:
        yield f"a ran with tilework {a.tilework}, b with {b.tilework}"


def cells_of(row: KernelChange) -> tuple[str, ...]:
    """Return the figures of a row, in the order of `COLUMNS`."""
    a, b = row.a, row.b
    return (
        f"{a.seconds * 1e3:.3f}" if a.calls else "",
        f"{b.seconds * 1e3:.3f}" if b.calls else "",
        f"{row.change * 1e3:+.3f}",
        str(a.calls or ""),
        str(b.calls or ""),
        "" if a.each is None else f"{a.each * 1e6:.2f}",
        "" if b.each is None else f"{b.each * 1e6:.2f}",
        ratio_text(row),
    )


def totals_of(found: ProfileComparison) -> tuple[str, ...]:
    """Return the figures of all kernels together, in the order of `COLUMNS`."""
    a, b = found.totals
    calls = (str(sum(row.a.calls for row in found.rows)), str(sum(row.b.calls for row in found.rows)))
    ratio = f"{b / a:.2f}" if a and b else ""
    return f"{a * 1e3:.3f}", f"{b * 1e3:.3f}", f"{(b - a) * 1e3:+.3f}", *calls, "", "", ratio


def ratio_text(row: KernelChange) -> str:
    """``0.64``, ``1.02 ~`` within noise, ``new`` and ``gone``."""
    if row.ratio is None:
        return row.kind
    return f"{row.ratio:.2f}{' ~' if row.kind == 'same' else ''}"


def name_of(row: KernelChange) -> str:
    return f"{row.name} (autotuning)" if row.is_tuning else row.name


def verdict(found: ProfileComparison) -> list[str]:
    """Return the result of the comparison in a few sentences."""
    if not found.rows:
        return ["neither has kernels"]
    (a, b), lines = found.totals, list[str]()
    if a and b:
        lines.append(f"in all kernels b takes {b / a:.2f} times as long as a ({(b - a) * 1e3:+.3f} ms)")
    for kind in ("slower", "faster", "new", "gone"):
        rows = [row for row in found.rows if row.kind == kind]
        if rows:
            names = ", ".join(f"`{name_of(row)}`{f' {row.ratio:.2f}' if row.ratio else ''}" for row in rows[:4])
            more = f" and {len(rows) - 4} more" if len(rows) > 4 else ""
            lines.append(f"{kind}: {names}{more}")
    if any(row.kind == "same" for row in found.rows):
        lines.append(f"~ within {100 * NOISE:.0f} %, which two runs of the same program may differ by")
    return lines
