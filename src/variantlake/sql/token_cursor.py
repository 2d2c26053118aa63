"""Read the parts of a statement one after the other, by its tokens."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from variantlake.quoting import Parts
from variantlake.sql.tokens import TEXTS, kind_at, tokenize


class TokenCursor:
    """A place in the tokens of a text, from which methods read the next part."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.tokens: Sequence[Token] = tokenize(text)
        while self.tokens and self.tokens[-1].token_type is TokenType.SEMICOLON:
            self.tokens = self.tokens[:-1]
        self.at = 0
        self._unclosed = False

    @property
    def done(self) -> bool:
        """Whether nothing is left."""
        return self.at >= len(self.tokens)

    @property
    def read(self) -> bool:
        """Whether nothing is left, and all that was opened is closed."""
        return self.done and not self._unclosed

    def take(self, *words: str) -> bool:
        """Skip these words, and return True, if they come next."""
        if not self._comes(words):
            return False
        self.at += len(words)
        return True

    def rest(self) -> str:
        """Read all that is left."""
        start, self.at = self.at, len(self.tokens)
        return self.span(start, self.at)

    def until(self, *words: str) -> str:
        """Read the text up to one of these words outside parentheses and CASE."""
        start, opened = self.at, list[str]()
        while not self.done:
            word = self.word(self.at)
            if kind_at(self.tokens, self.at - 1) in (TokenType.DOT, TokenType.COLON):
                word = ""  # a part of a name or a path: `s.end`, `span:when`
            if not opened and self.at > start and word in words:
                break
            if self.kind() in _OPENS or word == "CASE":
                opened.append(word)
            elif self.kind() in _CLOSES or (word == "END" and opened[-1:] == ["CASE"]):
                self._unclosed = self._unclosed or not opened
                del opened[-1:]
            self.at += 1
        self._unclosed = self._unclosed or bool(opened)
        return self.span(start, self.at)

    def items(self) -> list[str]:
        """Read the parts of a list in parentheses."""
        if self.kind() is not TokenType.L_PAREN:
            return []
        self.at += 1
        parts = []
        while not self.done and self.kind() is not TokenType.R_PAREN:
            parts.append(self.until(",", ")"))
            if self.word(self.at) == ",":
                self.at += 1
        self.at += 1
        return parts

    def name(self) -> str | None:
        """Read a name, perhaps qualified, or a path: parts with dots or colons between them."""
        start = self.at
        while not self.done:
            self.at += 1
            if self.kind() not in (TokenType.DOT, TokenType.COLON):
                return self.span(start, self.at)
            self.at += 1
        return None

    def close(self) -> None:
        """Skip the parenthesis that opens here, with its contents."""
        depth = 0
        while not self.done:
            kind = self.tokens[self.at].token_type
            depth += int(kind is TokenType.L_PAREN) - int(kind is TokenType.R_PAREN)
            self.at += 1
            if not depth:
                return

    def kind(self) -> TokenType | None:
        """The type of the next token; None at the end."""
        return kind_at(self.tokens, self.at)

    def word(self, at: int) -> str:
        """The token at a place in capitals; empty for a quoted name, a text and the end."""
        token = self.tokens[at] if at < len(self.tokens) else None
        quoted = token is None or token.token_type in _QUOTED
        return "" if token is None or quoted else token.text.upper()

    def word_or_name(self) -> str | None:
        """Read one name, without quotes."""
        parts = self.parts()
        return parts[0] if parts is not None and len(parts) == 1 else None

    def text(self) -> str | None:
        """Read a text in quotes; several in a row are one."""
        found = list[str]()
        while self.kind() in TEXTS:
            found.append(self.tokens[self.at].text)
            self.at += 1
        return "".join(found) if found else None

    def parts(self) -> Parts | None:
        """Read the parts of a name, without quotes."""
        found = list[str]()
        while not self.done and self.kind() not in (*TEXTS, TokenType.COMMA, TokenType.L_PAREN):
            found.append(self.tokens[self.at].text)
            self.at += 1
            if self.kind() is not TokenType.DOT:
                return tuple(found)
            self.at += 1
        return None

    def properties(self) -> dict[str, str] | None:
        """Read a list of properties and their values; None for another form."""
        found = dict[str, str]()
        if not self.take("("):
            return None
        while (key := self.key()) is not None:
            self.take("=")
            value = self.text() if self.kind() in TEXTS else self._bare()
            if value is None or key in found:
                return None
            found[key] = value
            if not self.take(","):
                return found if self.take(")") else None
        return None

    def key(self) -> str | None:
        """Read the name of a property, in quotes or not."""
        if self.kind() in TEXTS:
            return self.text()
        parts = self.parts()
        return None if parts is None else ".".join(parts)

    def _bare(self) -> str | None:
        """Read a number or a boolean, in the form that the property should have."""
        found = self.until(",", ")")
        return found.lower() if found.lower() in ("true", "false") else found or None

    def _comes(self, words: tuple[str, ...]) -> bool:
        return all(self.word(self.at + place) == word for place, word in enumerate(words))

    def span(self, start: int, stop: int) -> str:
        """The text of the tokens from `start` to before `stop`."""
        if start >= stop:
            return ""
        return self._text[self.tokens[start].start : self.tokens[stop - 1].end + 1]


_OPENS = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSES = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)
_QUOTED = (TokenType.IDENTIFIER, TokenType.STRING, TokenType.RAW_STRING)
