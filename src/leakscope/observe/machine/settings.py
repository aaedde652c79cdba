"""An environment in, the variables that bear on memory out. Chosen by name; never a secret.

What is not listed is not recorded. Families are listed by their prefix where a library owns the
prefix; a name that speaks of a secret is left out even there (`TF_TOKEN_…` is not TensorFlow's).
"""

from __future__ import annotations

from collections.abc import Mapping

from leakscope.record.format import storable
from leakscope.record.secrets import hide, is_secret_name, secret_values

_NAMES = frozenset(
    (
        *("GLIBC_TUNABLES", "LD_PRELOAD", "PYTHONMALLOC", "PYTHONMALLOCSTATS", "PYTHONHASHSEED"),
        *("PYTHONDEVMODE", "PYTHONTRACEMALLOC", "PYTHON_GIL", "PYTHON_JIT"),
        *("MALLOC_CONF", "LRU_CACHE_CAPACITY", "CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING"),
        *("CUDA_MODULE_LOADING", "CUDNN_BENCHMARK", "HIP_VISIBLE_DEVICES", "TF_CPP_MAX_VLOG_LEVEL"),
        *("TF_ENABLE_ONEDNN_OPTS", "TF_GPU_ALLOCATOR", "TF_FORCE_GPU_ALLOW_GROWTH", "TF_XLA_FLAGS"),
        *("TF_NUM_INTEROP_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_USE_LEGACY_KERAS"),
        *("JAX_PLATFORMS", "JAX_ENABLE_COMPILATION_CACHE", "JAX_COMPILATION_CACHE_MAX_SIZE"),
        *("KERAS_BACKEND", "TORCH_SHOW_CPP_STACKTRACES", "TORCHINDUCTOR_COMPILE_THREADS"),
        *("TOKENIZERS_PARALLELISM", "NUMEXPR_MAX_THREADS", "NUMEXPR_NUM_THREADS"),
        *("VECLIB_MAXIMUM_THREADS", "RAYON_NUM_THREADS", "ARROW_DEFAULT_MEMORY_POOL"),
    )
)
_FAMILIES = (
    *("MALLOC_", "MIMALLOC_", "JE_MALLOC", "_RJEM_MALLOC", "TCMALLOC_", "OMP_", "GOMP_", "KMP_"),
    *("MKL_", "OPENBLAS_", "BLIS_", "ONEDNN_", "DNNL_", "PYTORCH_", "XLA_", "NCCL_"),
)


def memory_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Names and values, sorted by name."""
    values = secret_values(environment)
    return {
        name: storable(hide(value, values))
        for name, value in sorted(environment.items())
        if (name in _NAMES or name.startswith(_FAMILIES)) and not is_secret_name(name)
    }
