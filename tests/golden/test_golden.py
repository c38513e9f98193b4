"""Every golden kernel still gives the same text; see `harness`."""

import pytest

from tests.golden.harness import RENDER, kernels, read_expected, topics

CASES = [(kind, topic, name) for kind in RENDER for topic in topics(kind) for name in kernels(kind, topic)]


@pytest.mark.parametrize(("kind", "topic", "name"), CASES)
def test_golden(kind: str, topic: str, name: str) -> None:
    text = RENDER[kind][2](*kernels(kind, topic)[name]).strip()
    assert text == read_expected(kind, topic)[name]


def test_there_are_enough_mistakes() -> None:
    assert sum(kind == "errors" for kind, _, _ in CASES) >= 40


@pytest.mark.parametrize("topic", topics("errors"))
def test_every_mistake_is_diagnosed_at_the_users_line(topic: str) -> None:
    for name, text in read_expected("errors", topic).items():
        assert text.startswith(f"tests/golden/errors/{topic}.py:") or "tilework/language/" in text, name
        assert "error:" in text, name
        assert "Traceback" not in text, name
