"""Compile the models under `torch.compile` and compare each with eager torch; one line per model.

python -m tilework.as_triton -m tests.inductor.sweep                      all, on the CPU
python -m tilework.as_triton -m tests.inductor.sweep softmax training --device cuda
"""

import argparse
import sys
import time
import traceback
from collections.abc import Sequence

import torch
from torch._inductor import config

from tests.inductor import models, training

TRAINING = {"training": False, "training_with_compiled_step": True}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="models; all without")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--mode", help="of torch.compile: reduce-overhead, max-autotune")
    parser.add_argument("--traceback", action="store_true")
    given = parser.parse_args(arguments)
    config.cpu_backend = "triton"
    wrong = 0
    for name in given.names or [*models.CASES, *TRAINING]:
        start = time.perf_counter()
        try:
            if name in TRAINING:
                training.check(given.device, compile_step=TRAINING[name], mode=given.mode)
            else:
                models.check(name, given.device, mode=given.mode)
            said = "ok"
        except Exception as error:
            wrong += 1
            said = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            if given.traceback:
                traceback.print_exc()
        print(f"{name:28} {time.perf_counter() - start:6.1f} s  {said}", flush=True)
    print(f"{wrong} wrong, torch {torch.__version__}")
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
