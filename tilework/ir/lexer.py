"""Tokens of IR text, as xDSL's lexer gives them: the common ones by one regular expression.

Parsing asks for the kind and the text of every token and for the place of few, so a `Word` has the first two at hand.
`WordParser` is the part of xDSL's parser that is called for each token, without its detours.
"""

import re

from xdsl.parser import Parser
from xdsl.utils.lexer import Input, Span, Token
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRToken, MLIRTokenKind, PunctuationSpelling

# White space and comments, then an identifier, a decimal integer or a character of punctuation that starts nothing longer.
COMMON_TOKEN = re.compile(
    r"(?:\s++|//[^\n]*+)*+"
    r"([A-Za-z_][\w$.]*+|[%!^](?:[0-9]++|[A-Za-z$._-][\w$.-]*+)|#(?!-\})(?:[0-9]++|[A-Za-z$._-][\w$.-]*+)"
    r"|[:,()}\[\]<>=*?|+]|\{(?!-#)|[0-9]++(?![.x]))",
    re.ASCII,
)
BARE_IDENT = MLIRTokenKind.BARE_IDENT
TOKEN_KINDS = {
    **{kind.value: kind for kind in MLIRTokenKind if kind.value in set(":,(){}[]<>=*?|+")},
    **dict.fromkeys("0123456789", MLIRTokenKind.INTEGER_LIT),
    "%": MLIRTokenKind.PERCENT_IDENT,
    "!": MLIRTokenKind.EXCLAMATION_IDENT,
    "^": MLIRTokenKind.CARET_IDENT,
    "#": MLIRTokenKind.HASH_IDENT,
}


class Word:
    """A token of xDSL's in use; `span` is made when it is asked for."""

    __slots__ = ("input", "kind", "start", "text")

    def __init__(self, kind: MLIRTokenKind, text: str, start: int, input: Input) -> None:
        self.kind = kind
        self.text = text
        self.start = start
        self.input = input

    @property
    def span(self) -> Span:
        return Span(self.start, self.start + len(self.text), self.input)


class IRLexer(MLIRLexer):
    """The common tokens by one regular expression; string literals in linear time, with any text that is UTF-8."""

    def lex(self) -> MLIRToken:
        match = COMMON_TOKEN.match(self.input.content, self.pos)
        if match is None:
            return super().lex()
        start, self.pos = match.span(1)
        text = match[1]
        return Word(TOKEN_KINDS.get(text[0], BARE_IDENT), text, start, self.input)  # pyright: ignore[reportReturnType]

    _unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')

    def _lex_string_literal(self, start_pos: int) -> MLIRToken:
        token = super()._lex_string_literal(start_pos)
        if token.kind is MLIRTokenKind.BYTES_LIT and is_utf8(token.span.bytes_contents):  # pyright: ignore
            return Token(MLIRTokenKind.STRING_LIT, token.span)
        return token


def is_utf8(data: bytes) -> bool:
    """Whether `data` is text."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


class WordParser(Parser):
    """xDSL's parser; what it does for every token is done here at once."""

    @property
    def pos(self) -> int:
        state = self._parser_state
        return state.lexer.pos - len(state.current_token.text)

    def _consume_token(self, expected_kind: MLIRTokenKind | None = None) -> MLIRToken:
        state = self._parser_state
        token = state.current_token
        state.current_token = state.lexer.lex()
        return token

    def _parse_optional_token(self, expected_kind: MLIRTokenKind) -> MLIRToken | None:
        state = self._parser_state
        token = state.current_token
        if token.kind is not expected_kind:
            return None
        state.current_token = state.lexer.lex()
        return token

    def parse_optional_characters(self, text: str) -> str | None:
        state = self._parser_state
        if state.current_token.text != text:
            return None
        state.current_token = state.lexer.lex()
        return text

    def parse_optional_punctuation(self, punctuation: PunctuationSpelling) -> PunctuationSpelling | None:
        return None if self.parse_optional_characters(punctuation) is None else punctuation

    def parse_punctuation(self, punctuation: PunctuationSpelling, context_msg: str = "") -> PunctuationSpelling:
        if self.parse_optional_characters(punctuation) is None:
            self.raise_error(f"Expected '{punctuation}'{context_msg}")
        return punctuation
