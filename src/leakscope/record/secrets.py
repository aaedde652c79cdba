"""Words of a command line in, the same words without what nobody may read out.

A recording is passed on: in an issue, to a colleague. A token given as an argument, a password in
the address of a database or the value of an environment variable called `…_KEY` must not travel
with it. What is hidden is replaced by `<hidden>`, so that the rest of the line still says what ran.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

HIDDEN = "<hidden>"

_SECRET_WORDS = frozenset(
    (
        *("token", "password", "passwd", "passphrase", "passcode", "pass", "pwd", "pw", "secret"),
        *("secrets", "credential", "credentials", "creds", "auth", "authorization", "bearer"),
        *("key", "keys", "apikey", "accesskey", "cookie", "signature", "sig", "jwt"),
        *("pat", "pin", "otp", "dsn"),
    )
)
_PLAIN_ENDINGS = frozenset(
    (
        *("id", "ids", "file", "path", "dir", "length", "len", "limit", "count", "size", "type"),
        *("name", "dim", "dims", "num", "max", "min", "embedding", "embeddings", "dropout", "mode"),
    )
)
"""`--eos-token-id 2` and `--token-file x` hide nothing; `--token x` does."""

_NAME = r"[A-Za-z][\w.\-]*"
_ASSIGNED = re.compile(rf"""(?P<name>{_NAME})["']?\s*[=:]\s*["']?""")
_VALUE = re.compile(r"""[^\s"'&;,]+""")
_BEARER = re.compile(r"(?i)\b(bearer|basic|token)\s+([\w.~+/=\-]{8,})")
_IN_ADDRESS = re.compile(r"(?i)\b([a-z][a-z0-9+.\-]*://)([^/\s@]+)@")
_SHAPES = re.compile(
    r"\b(?:gh[pousr]_\w{16,}|github_pat_\w{16,}|glpat-[\w\-]{16,}|hf_[A-Za-z0-9]{16,}"
    r"|sk-[\w\-]{16,}|(?:AKIA|ASIA)[A-Z0-9]{12,}|xox[abprs]-[\w\-]{8,}|AIza[\w\-]{20,}"
    r"|eyJ[\w\-]{8,}\.[\w\-]{8,}\.[\w\-]*)"
)
"""How tokens of GitHub, GitLab, Hugging Face, OpenAI, AWS, Slack, Google and JSON web tokens look:
they are told by themselves, wherever they stand."""

_OPTION = re.compile(rf"-{{1,2}}(?P<name>{_NAME})")
_SHORTEST_VALUE = 6
"""Shorter values of secret variables (`1`, `yes`, a port) would hide half of any command line."""

_FOLDERS = ("PWD", "OLDPWD")
"""The shell's working directories, not passwords."""


def is_secret_name(name: str) -> bool:
    """`HF_TOKEN`, `--api-key`, `dbPassword`; not `tokenizer`, not `max_tokens`, not `token_id`."""
    words = [word.lower() for word in _words_of(name)]
    if not words or words[-1] in _PLAIN_ENDINGS:
        return False
    return any(word in _SECRET_WORDS for word in words)


def secret_values(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Values that may stand nowhere, the longest first: of two, one may begin with the other."""
    found = {
        value
        for name, value in environment.items()
        if any(word.lower() in _SECRET_WORDS for word in _words_of(name))
        and name not in _FOLDERS
        and len(value) >= _SHORTEST_VALUE
    }
    return tuple(sorted(found, key=len, reverse=True))


def hide(text: str, values: Iterable[str] = ()) -> str:
    """One word or sentence without secrets."""
    for value in values:
        text = text.replace(value, HIDDEN)
    text = _IN_ADDRESS.sub(rf"\1{HIDDEN}@", text)
    text = _SHAPES.sub(HIDDEN, text)
    return _hide_assigned(_BEARER.sub(rf"\1 {HIDDEN}", text))


def hide_in_command(words: Sequence[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """A command line without secrets: as many words as before."""
    values = secret_values(environment)
    shown: list[str] = []
    is_value_secret = False
    for word in words:
        if is_value_secret and not word.startswith("-"):
            shown.append(HIDDEN)
            is_value_secret = False
            continue
        shown.append(hide(word, values))
        option = _OPTION.fullmatch(word)
        is_value_secret = option is not None and is_secret_name(option["name"])
    return tuple(shown)


def _hide_assigned(text: str) -> str:
    """`name=value` and `name: value`, where the name speaks of a secret."""
    shown, position = [], 0
    for match in _ASSIGNED.finditer(text):
        if match.start() >= position and is_secret_name(match["name"]):
            value = _VALUE.match(text, match.end())
            if value is not None:
                shown += [text[position : match.end()], HIDDEN]
                position = value.end()
    return "".join(shown) + text[position:]


def _words_of(name: str) -> list[str]:
    """`dbPassword` and `DB_PASSWORD` are two words each."""
    return re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)
