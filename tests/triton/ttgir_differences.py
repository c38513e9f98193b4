"""Different decisions of our passes and Triton's, from the same TTIR.

TRITON_PYTHON=... python -m tests.triton.ttgir_differences WARPS STAGES          a line per kernel
TRITON_PYTHON=... python -m tests.triton.ttgir_differences WARPS STAGES NAME     and the lines that differ
"""

import difflib
import sys
from collections import Counter

from tests.pipeline.gpu import CASES, Config, ttgir, ttir
from tests.pipeline.gpu_matrix import ARCHS, is_supported
from tests.pipeline.test_reference_ttgir import lines
from tests.triton.peer import Answer, run_triton, triton_python
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module


def ask(configs: list[Config]) -> Answer:
    """Return Triton's result for the TTIR of each."""
    python = triton_python()
    assert python is not None, "TRITON_PYTHON must name an interpreter that has Triton"
    entries = [
        {
            "key": str(config),
            "arch": config.arch,
            "text": print_module(ttir(config.name, config.arch)),
            "options": {"num_warps": config.warps, "num_stages": config.stages},
        }
        for config in configs
    ]
    return run_triton(python, {"lowered": entries})


def main(warps: int, stages: int, *only: str) -> None:
    same = 0
    for arch in ARCHS:
        configs = [Config(name, arch, warps, stages) for name in only or CASES if is_supported(name, arch)]
        answer = ask(configs)
        for config in configs:
            if (refusal := answer.refused.get(str(config))) is not None:
                print(f"{config}: Triton: {refusal[:200]}")
                continue
            theirs, ours = parse_module(answer.printed[str(config)]), ttgir(config)
            found = list(difflib.unified_diff(lines(theirs), lines(ours), "triton", "tilework", lineterm="", n=0))
            same += not found
            if found:
                a, b = (Counter(op.name for op in module.walk()) for module in (theirs, ours))
                print(f"{config}: {len(found)} lines, only theirs {dict(a - b)}, only ours {dict(b - a)}", flush=True)
            if only:
                print("\n".join(found))
    print(f"{same} the same")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
