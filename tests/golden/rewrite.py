"""`make golden`: write what the compiler says now; the diff is for review."""

from tests.golden.harness import RENDER, expected_path, kernels, topics


def main() -> None:
    for kind, (_, _, render) in RENDER.items():
        for topic in topics(kind):
            sections = [f"== {name}\n{render(*entry).strip()}\n" for name, entry in kernels(kind, topic).items()]
            expected_path(kind, topic).write_text("\n".join(sections))


if __name__ == "__main__":
    main()
