"""Every kernel in many configurations, executed after every pass: ``python -m tests.pipeline.gpu_matrix [--jobs N]
[NAME...]``.

The part that every test run takes is `SAMPLE`; this command runs all of it and prints one line per configuration.
"""

import argparse
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed

from tests.pipeline.gpu import CASES, Config, check

WARPS = (1, 2, 4, 8, 16)
STAGES = (1, 2, 3, 4, 5)
ARCHS = (80, 90)
SM_89_TYPES = ("fp8e4nv",)


def is_supported(name: str, arch: int) -> bool:
    """Return True if the target has the element types of a kernel."""
    return arch >= 89 or not any(dtype in name for dtype in SM_89_TYPES)


def matrix() -> list[Config]:
    """Each number of warps with three stages, each number of stages with four warps, and clusters."""
    shapes = [(warps, 3) for warps in WARPS] + [(4, stages) for stages in STAGES if stages != 3] + [(8, 4), (16, 2)]
    single = [
        Config(name, arch, warps, stages)
        for name in CASES
        for arch in ARCHS
        if is_supported(name, arch)
        for warps, stages in shapes
    ]
    return single + [Config(name, 90, 4, 3, ctas) for name in CASES for ctas in (2, 4)]


# Every kernel on both targets, with other warps and stages each time.
SAMPLE = [
    Config(name, arch, WARPS[number % len(WARPS)], STAGES[(number * 2 + arch) % len(STAGES)])
    for number, name in enumerate(CASES)
    for arch in ARCHS
    if is_supported(name, arch)
]


def checked(config: Config) -> tuple[Config, str | None, float]:
    start = time.perf_counter()
    try:
        problem = check(config)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        problem = f"{config}: {type(error).__name__}: {error} ({where.filename}:{where.lineno})"
    return config, problem, time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only kernels whose name begins so")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    configs = [c for c in matrix() if not args.names or c.name.startswith(tuple(args.names))]
    failures = 0
    with ProcessPoolExecutor(args.jobs) as pool:
        for future in as_completed([pool.submit(checked, config) for config in configs]):
            config, problem, seconds = future.result()
            failures += problem is not None
            print(f"{'FAIL' if problem else 'ok':5}{seconds:6.1f} s  {problem or config}", flush=True)
    print(f"{len(configs)} configurations, {failures} failures")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
