#!/usr/bin/env python3
"""Writes tests/unit/trainer/data/python_state_dict.pt as Python's torch.save does, with what a real
state_dict can hold: _metadata, views, storage shared by several tensors, integers."""
import collections
import pathlib

import torch

out = pathlib.Path(__file__).parent.parent / "unit/trainer/data/python_state_dict.pt"
weight = torch.arange(6, dtype=torch.float32).view(2, 3)
state = collections.OrderedDict(
    [
        ("weight", weight),
        ("transposed", weight.t()),
        ("tail", weight.view(-1)[4:]),
        ("running.num_batches_tracked", torch.tensor(12)),
    ]
)
state._metadata = collections.OrderedDict([("", {"version": 1}), ("running", {"version": 2})])
torch.save(state, out)
assert list(torch.load(out, weights_only=True)) == list(state)
