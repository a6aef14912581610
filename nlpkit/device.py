"""Where torch computes, and what has to be known of that place: everything that asks which device
or processor this is, so that the models need not.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import functools
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator

import torch

from nlpkit.errors import NlpkitError
from nlpkit.memory import check_memory

# multiply-adds from which on a GPU makes up for the seconds that it takes to get ready
_WORTH_MOVING = 10.0**10
_SMALL_MEMORY = (
    "lower `batch_size` first, then the length of sequences, `dim`, `hidden` or `layers`"
)


def pick_device(
    name: str = "auto", work: float | None = None, *, sparse: bool = False
) -> torch.device:
    """``auto`` is cuda, then mps, then cpu; a named device must be there.

    ``work`` is about how many multiply-adds there are to do (parameters times tokens, for a model
    that is only used): ``auto`` leaves little of it to the CPU. Where embeddings have ``sparse``
    gradients, which mps lacks, that is not chosen.

    >>> pick_device("cpu"), pick_device("auto", work=1000)
    (device(type='cpu'), device(type='cpu'))
    """
    if name == "auto":
        if work is not None and work < _WORTH_MOVING:
            return torch.device("cpu")
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() and not sparse else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device).tolist()  # the "meta" device has shapes and no values
    except (RuntimeError, AssertionError, NotImplementedError):
        raise NlpkitError(f"no device {name} here", hint="`device` auto or cpu") from None
    return device


def check_bfloat16() -> None:
    """Refuse to compute in bfloat16 on a CPU that dies of it."""
    if not _bfloat16_works():
        raise NlpkitError(
            "this processor cannot compute in bfloat16",
            hint="`dtype` float32, or ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 in the environment",
        )


@functools.cache
def _bfloat16_works() -> bool:
    """Try it in another process: some virtual machines promise instructions they do not have, and
    a program dies of the first one."""
    if sys.platform != "linux":
        attempt = f"from {__name__} import _compute_in_bfloat16 as go; go()"
        return not subprocess.run([sys.executable, "-c", attempt], capture_output=True).returncode
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # threads are not there in the fork, which needs none
        child = os.fork()
    if child == 0:
        faulthandler.disable()  # its death is an answer
        with contextlib.suppress(BaseException):
            _compute_in_bfloat16()
            os._exit(0)
        os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _compute_in_bfloat16() -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # which ends a process that waits
    signal.alarm(10)
    torch.set_num_threads(1)
    x = torch.ones(32, 32)
    with torch.autocast("cpu", torch.bfloat16):
        torch.nn.functional.linear(x, x)


def has_bfloat16(device: torch.device) -> bool:
    """Whether the device has instructions for bfloat16, so that it may be the faster one there."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu":
        return False
    instructions: Callable[[], bool] | None = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return instructions is not None and instructions() and _bfloat16_works()


def keep_freed_memory() -> None:
    """Ask the C library to keep freed memory instead of giving it back to the system.

    Activations of a step are freed and asked for again in the next one; having the system clear
    those pages every time costs a quarter of the time of a small model. Only glibc can be asked.
    """
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL("libc.so.6")
        library.mallopt(-3, 1 << 25)  # M_MMAP_THRESHOLD: the highest it accepts, 32 MB
        library.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD


@contextlib.contextmanager
def seeded(seed: int, step: int, device: torch.device) -> Iterator[None]:
    """Random numbers (dropout) that depend on seed and step; the global generators are put back."""
    devices = [device] if device.type == "cuda" else []
    number = (seed * 1_000_003 + step) % 2**64
    with torch.random.fork_rng(devices=devices):
        # torch.manual_seed would also write down where it was called from, for a GPU to come
        torch.default_generator.manual_seed(number)
        if device.type == "cuda":
            torch.cuda.manual_seed(number)
        elif device.type == "mps":
            torch.mps.manual_seed(number)
        yield


def check_training_memory(
    parameters: int,
    device: torch.device | None,
    *,
    activations: int = 0,
    batch: str = "batch_size",
) -> None:
    """Refuse a training for which there is no memory, before the model is made.

    For each parameter there are a weight, a gradient and two moments; ``activations`` are numbers
    kept for the backward pass. This is less than is needed in the end. ``batch`` is the setting of
    the size of batches.
    """
    on_gpu = device is not None and device.type == "cuda"
    check_memory(
        4 * (4 * parameters + activations),
        f"training a model of {parameters:,} parameters",
        hint=_SMALL_MEMORY.replace("batch_size", batch),
        free=torch.cuda.mem_get_info(device)[0] if on_gpu else None,
    )


@contextlib.contextmanager
def memory_advice(advice: str = _SMALL_MEMORY) -> Iterator[None]:
    """Turn torch's ways of running out of memory into an error that says what to lower."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError):
        raise NlpkitError("out of memory", hint=advice) from None
    except RuntimeError as error:
        if "allocate" not in str(error):
            raise
        raise NlpkitError("out of memory", hint=advice) from None


@contextlib.contextmanager
def flush_denormals() -> Iterator[None]:
    """Near a loss of 0 gradients shrink to numbers that take ages to compute with: here they are 0.

    Only here, since other parts of a program may rely on such numbers.
    """
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)
