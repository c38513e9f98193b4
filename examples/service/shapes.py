"""The shapes that the service is for: running this records what they need.

TILEWORK_RECORD=service.jsonl python -m examples.service.shapes
"""

from collections.abc import Callable

import numpy as np

from examples.service.kernels import Array, matmul, softmax

# any number of rows will do; sizes of columns that are multiples of 16, or that are not, are different kernels
SOFTMAX = ((64, 1000), (16, 512), (3, 512))
MATMUL = ((64, 256, 128), (128, 48, 32))
REFUSED = (5, 1024)  # not recorded


def requests(rng: np.random.Generator) -> list[tuple[str, list[Array], Callable[..., Array]]]:
    """(name of the function, generated arguments, what computes the same by NumPy) of each shape."""

    def generated(*shape: int) -> Array:
        return rng.standard_normal(shape, dtype=np.float32)

    made: list[tuple[str, list[Array], Callable[..., Array]]] = []
    made += [("softmax", [generated(*shape)], numpy_softmax) for shape in SOFTMAX]
    made += [("matmul", [generated(m, k), generated(k, n)], np.matmul) for m, k, n in MATMUL]
    return made


def numpy_softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def main() -> None:
    functions: dict[str, Callable[..., Array]] = {"softmax": softmax, "matmul": matmul}
    for name, arguments, expected in requests(np.random.default_rng(0)):
        assert np.allclose(functions[name](*arguments), expected(*arguments), atol=1e-3), name
    print(f"{len(SOFTMAX)} shapes of softmax and {len(MATMUL)} of matmul give what NumPy gives")


if __name__ == "__main__":
    main()
