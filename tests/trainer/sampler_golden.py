#!/usr/bin/env python3
"""Writes tests/unit/trainer/data/distributed_sampler.txt with PyTorch's own DistributedSampler.

Run it with a Python that has torch (make reference installs one). One case a line:
  size world rank shuffle seed epoch drop_last count crc32 first indices (at most 40)
crc32 is zlib's, over all indices as little-endian int64.
"""
import itertools
import pathlib
import zlib

import numpy
import torch
from torch.utils.data import DistributedSampler

out = pathlib.Path(__file__).parent.parent / "unit/trainer/data/distributed_sampler.txt"
cases = list(itertools.product((1, 2, 7, 10, 31), (1, 2, 3, 4, 8, 40), (False, True), (0, 5), (0, 3)))
cases = [(s, w, sh, sd, e, d) for (s, w, sh, sd, e) in cases for d in (False, True) if sh or sd + e == 0]
cases += [(n, w, True, 0, e, False) for n in (10000, 60000) for w in (1, 2, 3, 8) for e in (0, 1)]
with open(out, "w") as f:
    print(f"# torch {torch.__version__}, by tests/trainer/sampler_golden.py", file=f)
    for size, world, shuffle, seed, epoch, drop_last in cases:
        for rank in sorted({0, world // 2, world - 1}):
            if drop_last and size < world:
                continue
            sampler = DistributedSampler(range(size), world, rank, shuffle, seed, drop_last)
            sampler.set_epoch(epoch)
            indices = list(sampler)
            assert len(sampler) == len(indices)
            crc = zlib.crc32(numpy.array(indices, dtype="<i8").tobytes())
            print(size, world, rank, int(shuffle), seed, epoch, int(drop_last), len(indices), crc,
                  *indices[:40], file=f)
