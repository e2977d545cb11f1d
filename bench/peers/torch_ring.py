"""Ring attention of PyTorch over processes, causal, with positions in balanced order.

PyTorch's own context parallelism (`torch.distributed.tensor.experimental.context_parallel`) dispatches to kernels that it has for GPUs
only. This is its algorithm, its balanced order of positions included, written with the attention of CPUs: rank r of n has chunks r and
2n - 1 - r of 2n, so that all ranks compute the same number of scores. Keys and values of the next rank travel while a rank attends to
those that it has; backward sends them round again, and the sums of their gradients behind them.
"""

import torch
import torch.distributed as dist

forward_block = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
backward_block = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward


def balanced(whole, rank, ranks, dim):
    """The part of a rank, in balanced order along `dim`."""
    chunks = whole.chunk(2 * ranks, dim)
    return torch.cat([chunks[rank], chunks[2 * ranks - 1 - rank]], dim)


class Sent:
    """Tensors on their way to the next rank, and those of the previous rank on theirs to this one."""

    def __init__(self, tensors, group):
        rank, ranks = dist.get_rank(group), dist.get_world_size(group)
        self.sent = [t.contiguous() for t in tensors]
        self.received = [torch.empty_like(t) for t in self.sent]
        to, source = ((rank + step) % ranks for step in (1, -1))
        self.works = [work for number, (out, into) in enumerate(zip(self.sent, self.received))
                      for work in (dist.isend(out, group=group, group_dst=to, tag=number), dist.irecv(into, group=group, group_src=source, tag=number))]

    def wait(self):
        for work in self.works:
            work.wait()
        return self.received


def halves(step, rank, s):
    """(queries, keys) that meet in a step after the first, none of which is masked: of earlier ranks the first half of the keys, of
    later ones all keys for the second half of the queries."""
    half = slice(0, s // 2)
    return (slice(0, s), half) if step <= rank else (slice(s // 2, s), slice(0, s))


def repeated(x, groups):
    return x.repeat_interleave(groups, 1) if groups > 1 else x


def summed(x, groups):
    return x.unflatten(1, (-1, groups)).sum(2) if groups > 1 else x


class Ring(torch.autograd.Function):
    """(batch, heads, positions of the rank, size); keys and values may have fewer heads, and travel so."""

    @staticmethod
    def forward(ctx, q, k, v, group):
        rank, ranks, s, groups = dist.get_rank(group), dist.get_world_size(group), q.shape[2], q.shape[1] // k.shape[1]
        here = (k, v)
        for step in range(ranks):
            coming = Sent(here, group) if step + 1 < ranks else None
            keys, values = (repeated(x, groups) for x in here)
            if step == 0:
                out, sums = forward_block(q, keys, values, 0.0, True)
            else:
                queries, which = halves(step, rank, s)
                part, part_sums = forward_block(q[:, :, queries], keys[:, :, which], values[:, :, which], 0.0, False)
                # Of two parts of a softmax with sums e^a and e^b the second has the share sigmoid(b - a).
                old, old_sums = out[:, :, queries], sums[:, :, queries]
                share = torch.sigmoid(part_sums - old_sums).unsqueeze(-1)
                old += share * (part - old)
                sums[:, :, queries] = torch.logaddexp(old_sums, part_sums)
            if coming:
                here = coming.wait()
        ctx.save_for_backward(q, k, v, out, sums)
        ctx.group = group
        return out

    @staticmethod
    def backward(ctx, grad):
        q, k, v, out, sums = ctx.saved_tensors
        group = ctx.group
        rank, ranks, s, groups = dist.get_rank(group), dist.get_world_size(group), q.shape[2], q.shape[1] // k.shape[1]
        here, gradients = (k, v), None
        for step in range(ranks):
            coming = Sent(here, group) if step + 1 < ranks else None
            keys, values = (repeated(x, groups) for x in here)
            if step == 0:
                dq, dk, dv = backward_block(grad, q, keys, values, out, sums, 0.0, True)
                dk, dv = (summed(x, groups) for x in (dk, dv))
            else:
                queries, which = halves(step, rank, s)
                part, dk_part, dv_part = backward_block(grad[:, :, queries], q[:, :, queries], keys[:, :, which], values[:, :, which],
                                                        out[:, :, queries], sums[:, :, queries], 0.0, False)
                dq[:, :, queries] += part
                dk, dv = gradients.wait()
                dk[:, :, which] += summed(dk_part, groups)
                dv[:, :, which] += summed(dv_part, groups)
            gradients = Sent((dk, dv), group)
            if coming:
                here = coming.wait()
        dk, dv = gradients.wait()
        return dq, dk, dv, None


@torch.compiler.disable
def attention(q, k, v, group=None):
    """Causal attention over the positions of all ranks of `group`."""
    return Ring.apply(q, k, v, group or dist.group.WORLD)
