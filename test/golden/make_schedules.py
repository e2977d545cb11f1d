"""Learning rates of transformers' and PyTorch's schedulers: see README.md. usage: make_schedules.py

The rate of step t, from 1, is that after t calls of the scheduler's step().
"""

import json
import pathlib

import torch
from transformers import optimization

STEPS = 20
LR = 0.05


def cases(optimizer):
    """Options of a program, and the scheduler that they stand for."""
    yield ["--schedule=constant", "--warmup=3"], optimization.get_constant_schedule_with_warmup(optimizer(), 3)
    yield ["--schedule=linear"], optimization.get_linear_schedule_with_warmup(optimizer(), 0, STEPS)
    yield ["--schedule=linear", "--warmup=3", "--min-lr=0.01"], optimization.get_polynomial_decay_schedule_with_warmup(
        optimizer(), 3, STEPS, lr_end=0.01, power=1)
    yield ["--schedule=cosine", "--warmup=3"], optimization.get_cosine_schedule_with_warmup(optimizer(), 3, STEPS)
    yield ["--schedule=cosine", "--warmup=3", "--min-lr=0.01"], optimization.get_cosine_with_min_lr_schedule_with_warmup(
        optimizer(), 3, STEPS, min_lr=0.01)
    yield ["--schedule=inverse-sqrt", "--warmup=4"], optimization.get_inverse_sqrt_schedule(optimizer(), 4)
    inverse = optimization.get_inverse_sqrt_schedule(optimizer(), 4).lr_lambdas[0]
    yield ["--schedule=inverse-sqrt", "--warmup=4", "--min-lr=0.03"], torch.optim.lr_scheduler.LambdaLR(
        optimizer(), lambda t: inverse(t) if t <= 4 else max(inverse(t), 0.03 / LR))
    yield ["--schedule=wsd", "--warmup=3", "--decay-share=0.3"], optimization.get_wsd_schedule(
        optimizer(), 3, num_decay_steps=6, num_training_steps=STEPS, decay_type="linear")
    # Its warmup would begin at the minimum.
    yield ["--schedule=wsd", "--min-lr=0.01", "--decay-share=0.3"], optimization.get_wsd_schedule(
        optimizer(), 0, num_decay_steps=6, num_training_steps=STEPS, decay_type="linear", min_lr_ratio=0.01 / LR)


def main():
    def optimizer():
        return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=LR)

    result = []
    for options, scheduler in cases(optimizer):
        rates = []
        for _ in range(STEPS):
            scheduler.optimizer.step()
            scheduler.step()
            rates.append(scheduler.get_last_lr()[0])
        result.append({"options": options, "rates": rates})
    lines = ",\n".join(json.dumps(case) for case in result)
    text = f'{{"lr": {LR}, "steps": {STEPS}, "cases": [\n{lines}\n]}}\n'
    (pathlib.Path(__file__).resolve().parent / "schedules.json").write_text(text)


if __name__ == "__main__":
    main()
