"""Colours for MLIR's text, which Pygments does not know."""

from typing import ClassVar

from pygments.lexer import RegexLexer
from pygments.lexers import LEXERS
from pygments.token import Comment, Keyword, Name, Number, Operator, String, Text

__all__ = ["MlirLexer"]  # where Pygments looks


class MlirLexer(RegexLexer):
    """Values, ops, types, attributes, numbers."""

    name = "MLIR"
    aliases: ClassVar[list[str]] = ["mlir"]
    tokens: ClassVar[dict[str, list[tuple[str, object]]]] = {
        "root": [
            (r"//.*", Comment),
            (r'"(?:[^"\\]|\\.)*"', String),
            (r"%[\w$.-]+(?:#\d+)?", Name.Variable),
            (r"\^\w+", Name.Label),
            (r"@[\w$.-]+", Name.Function),
            (r"[#!][a-zA-Z][\w.]*", Keyword.Type),
            (r"\b(?:tensor|memref|vector|index|none|[su]?i\d+|b?f\d+\w*)\b", Keyword.Type),
            (r"\b(?:loc|attributes|dense|true|false|public|private|to|step|iter_args)\b", Keyword),
            (r"\b[a-z]\w*\.[\w.]+", Name.Function),
            (r"\bmodule\b", Keyword),
            (r"\b(?:0x[0-9A-Fa-f]+|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)", Number),
            (r"[=:<>{}()\[\],+*/?-]", Operator),
            (r"[ \t\n]+", Text),
            (r".", Text),
        ]
    }


def register() -> None:
    """Register the lexer, so that Pygments finds it by its name."""
    LEXERS[MlirLexer.__name__] = (__name__, MlirLexer.name, tuple(MlirLexer.aliases), (), ())
