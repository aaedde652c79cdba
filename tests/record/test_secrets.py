"""What nobody may read is hidden, and what only sounds like it is left alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakscope.record.secrets import HIDDEN, hide, hide_in_command, is_secret_name, secret_values

_VALUE = "Zx9-quite-secret"


@pytest.mark.parametrize(
    "words",
    [
        [f"--token={_VALUE}"],
        ["--token", _VALUE],
        ["--hf-token", _VALUE],
        ["--wandb_api_key", _VALUE],
        ["-password", _VALUE],
        ["--dbPassword", _VALUE],
        [f"DB_PASSWORD={_VALUE}"],
        [f"trainer.logger.api_key={_VALUE}"],
        [f"postgresql://me:{_VALUE}@host:5432/runs"],
        [f"https://{_VALUE}@github.com/x/y.git"],
        [f"https://host/get?user=me&token={_VALUE}&page=2"],
        ["-H", f"Authorization: Bearer {_VALUE}"],
        [f'{{"password": "{_VALUE}"}}'],
        ["-c", f"login(token='{_VALUE}')"],
        [f"ghp_{_VALUE.replace('-', 'x')}{'a' * 12}"],
        [f"prefix-{_VALUE}-suffix"],
    ],
    ids=lambda words: words[0][:24],
)
def test_hidden(words: list[str]) -> None:
    """Breaks when a way of handing over a secret is not known; the last by its variable only."""
    shown = hide_in_command(["python", "train.py", *words, "--epochs", "3"], {"MY_TOKEN": _VALUE})
    line = " ".join(shown)
    assert len(shown) == len(words) + 4
    assert _VALUE not in line
    assert _VALUE.replace("-", "x") not in line
    assert HIDDEN in line
    assert shown[-2:] == ("--epochs", "3")


@pytest.mark.parametrize(
    "words",
    [
        ["--tokenizer", "bert-base-uncased"],
        ["--max-tokens", "512"],
        ["--eos-token-id=2"],
        ["--token-file", "/run/token"],
        ["--key-dim", "64"],
        ["--monkey", "patch"],
        ["--data", "https://host/data.tar?part=3"],
        ["s3://bucket/model.pt"],
        ["/work/user@host/train.py"],
        ["12:30", "a:b", "lr=0.1"],
    ],
    ids=lambda words: words[0],
)
def test_left_alone(words: list[str]) -> None:
    """Breaks when the command line of an ordinary training job is torn to pieces."""
    environment = {"PWD": "/work/user@host", "OLDPWD": "/work", "A_KEY": "64"}
    assert hide_in_command(words, environment) == tuple(words)


def test_names() -> None:
    assert all(map(is_secret_name, ("TOKEN", "AWS_SECRET_ACCESS_KEY", "apiKey", "db.password")))
    assert not any(map(is_secret_name, ("TOKENIZERS_PARALLELISM", "MONKEY", "OMP_NUM_THREADS")))


def test_the_longer_of_two_values_goes_first() -> None:
    """Breaks when hiding a short secret leaves the tail of a longer one that begins with it."""
    values = secret_values({"A_TOKEN": "abcdefgh", "B_TOKEN": "abcdefgh-and-more"})
    assert "more" not in hide("x abcdefgh-and-more y", values)


@given(st.lists(st.text(max_size=30), max_size=6), st.text(min_size=6, max_size=20))
def test_any_words(words: list[str], value: str) -> None:
    """Breaks when foreign words make it raise, or a variable's value stays in one of them."""
    shown = hide_in_command([*words, f"x{value}y"], {"THE_SECRET": value})
    assert len(shown) == len(words) + 1
    assert value not in shown[-1].replace(HIDDEN, "")
