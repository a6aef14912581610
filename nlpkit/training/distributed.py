"""Training over several processes, as ``torchrun`` starts them: each has a rank and sees its share.

Gradients are averaged by torch's DistributedDataParallel; weights start and stay equal everywhere.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import nn


@dataclass(frozen=True)
class Processes:
    """How many there are and which one this is; alone unless told.

    >>> Processes().is_first
    True
    """

    count: int = 1
    rank: int = 0
    local_rank: int = 0  # among those on this machine: the number of its GPU

    @property
    def is_first(self) -> bool:
        """Whether this is the one that talks and writes files."""
        return self.rank == 0

    @classmethod
    def from_environment(cls) -> Processes:
        """What ``torchrun`` put into the environment."""
        if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
            return cls()
        return cls(
            int(os.environ["WORLD_SIZE"]),
            int(os.environ["RANK"]),
            int(os.environ.get("LOCAL_RANK", "0")),
        )

    def join(self, device: torch.device) -> torch.device:
        """Meet the others; the device of this process."""
        if self.count == 1:
            return device
        if device.type == "cuda":
            device = torch.device("cuda", self.local_rank)
            torch.cuda.set_device(device)
        if not dist.is_initialized():
            dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
        return device

    def leave(self) -> None:
        """Wait for the others and part."""
        if self.count > 1 and dist.is_initialized():
            dist.barrier()
            dist.destroy_process_group()

    def wrap(self, model: Any) -> Any:
        """A model whose gradients are averaged over all processes."""
        if self.count == 1:
            return model
        from torch.nn.parallel import DistributedDataParallel

        return DistributedDataParallel(model)

    def clock(self, device: torch.device) -> Callable[[], float]:
        """Seconds, the same in all processes."""
        if self.count == 1:
            return time.monotonic
        return lambda: self.agree(time.monotonic(), device)

    def agree(self, value: float, device: torch.device) -> float:
        """The first process's value, in all: clocks differ, decisions must not."""
        if self.count == 1:
            return value
        shared = torch.tensor(value, dtype=torch.float64, device=device)
        dist.broadcast(shared, 0)
        return float(shared)


class Synchronized(nn.Module):
    """The plain model, whose gradients another module averages over the processes."""

    def __init__(self, model: nn.Module, wrapper: Any) -> None:
        super().__init__()
        self.model = model
        self.no_sync = wrapper.no_sync
