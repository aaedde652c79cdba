"""What names and methods of torch and Python stand for, where only the name is to be seen."""

from __future__ import annotations

import re

MODULE_NAME = re.compile(
    r"(^|_)(model|net|network|encoder|decoder|backbone|generator|discriminator|critic|policy|actor"
    r"|classifier|student|teacher|unet|transformer|llm)\d*$"
)
LOSS_NAME = re.compile(r"(^|_)(loss(es)?|criterion|objective|cross_entropy)($|_)|Loss$")
LOADER_NAME = re.compile(r"(loader|dataloader|batches)s?(_.*)?$", re.IGNORECASE)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FREED_METHODS = _words(
    "detach detach_ numpy argmax argmin argsort nonzero long int bool eq ne gt lt ge le isnan "
    "isfinite state_dict count_nonzero sign"
)
"""What they give out has no graph."""
PLAIN_METHODS = _words(
    "item tolist size dim numel format join keys strip nelement element_size stride data_ptr"
)
PLAIN_CALLS = _words(
    "float int str len bool repr round range id type hash isinstance format ord time"
)
PASSED_THROUGH = _words(
    "sum max min list tuple dict set sorted reversed abs zip enumerate deepcopy"
)
PLAIN_ATTRIBUTES = _words(
    "shape dtype device ndim requires_grad grad_fn is_cuda __name__ names training"
)
ARRAY_ATTRIBUTES = _words("data grad indices weight bias")
SAME_MODULE = _words(
    "to cuda cpu eval train half float double share_memory compile requires_grad_ from_pretrained "
    "from_config prepare DataParallel DistributedDataParallel clone deepcopy"
)
"""Of a model, they give out a model."""
MODULE_BASES = _words("Module LightningModule PreTrainedModel Sequential")
ARRAY_NOTES = _words("Tensor ndarray FloatTensor LongTensor NDArray")
"""As annotations."""
