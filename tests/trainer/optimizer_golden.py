#!/usr/bin/env python3
"""Writes tests/unit/trainer/data/optimizers.txt with PyTorch's own optimizers.

Each block: "<name> <momentum> <steps> <size>", a line of start values, then for each step a line
"<lr> <gradients>" and a line of the parameters after it. Numbers are exact (float.hex()).
"""
import pathlib

import torch

out = pathlib.Path(__file__).parent.parent / "unit/trainer/data/optimizers.txt"
STEPS, SIZE = 12, 37


def line(tensor):
    return " ".join(float(x).hex() for x in tensor)


with open(out, "w") as f:
    print(f"# torch {torch.__version__}, by tests/trainer/optimizer_golden.py", file=f)
    for name, momentum in (("adadelta", 0.0), ("sgd", 0.5), ("sgd", 0.0)):
        torch.manual_seed(3)
        parameter = torch.nn.Parameter(torch.randn(SIZE))
        if name == "adadelta":
            optimizer = torch.optim.Adadelta([parameter], lr=1.0)
        else:
            optimizer = torch.optim.SGD([parameter], lr=0.01, momentum=momentum)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.7)
        print(name, momentum, STEPS, SIZE, file=f)
        print(line(parameter.detach()), file=f)
        for step in range(STEPS):
            # From large to tiny, and exact zeros, as relu nets give.
            parameter.grad = torch.randn(SIZE) * 10.0 ** (-step) * (torch.rand(SIZE) > 0.2)
            print(float(optimizer.param_groups[0]["lr"]).hex(), line(parameter.grad), file=f)
            optimizer.step()
            schedule.step()
            print(line(parameter.detach()), file=f)
