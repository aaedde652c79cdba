"""Tensor classes and modes of the program's own, which see what is asked of tensors."""

from typing import Any

import torch
from forced import ROUNDS, checksum, look, run
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

seen: list[str] = []


class Loud(torch.Tensor):
    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        seen.append(f"function {getattr(function, '__name__', function)}")
        look()
        return super().__torch_function__(function, types, args, kwargs or {})


class Wrapped(torch.Tensor):
    inner: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> "Wrapped":
        made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        seen.append(f"dispatch {function}")
        look()
        plain = [one.inner if isinstance(one, Wrapped) else one for one in args]
        result = function(*plain, **(kwargs or {}))
        return Wrapped(result) if isinstance(result, torch.Tensor) else result


class Functions(TorchFunctionMode):
    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        seen.append(f"function mode {getattr(function, '__name__', function)}")
        look()
        return function(*args, **(kwargs or {}))


class Operators(TorchDispatchMode):
    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        seen.append(f"dispatch mode {function}")
        look()
        return function(*args, **(kwargs or {}))


def main() -> str:
    torch.manual_seed(0)
    seen.clear()
    kept = []
    for _ in range(ROUNDS):
        x = torch.randn(4, 4, requires_grad=True)
        loud = torch.randn(4, 4).as_subclass(Loud)
        wrapped = Wrapped(torch.randn(4, 4))
        look()
        kept.append(((loud + 1) @ x).exp().sum().as_subclass(torch.Tensor))
        kept.append(((wrapped + 1) * wrapped).inner)
        with Functions():
            look()
            kept.append((x * x).sum())
        with Operators():
            look()
            kept.append((x @ x).relu().sum())
            kept[-1].backward()
            look()
        kept.append(x.grad)
    return checksum(*kept, *seen)


if __name__ == "__main__":
    run(main)
