# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""Every operation of a group beside what torch computes of all ranks' inputs, which each knows."""
import os

import torch
import torch.distributed as dist

from group import join, refused, same

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
COMPLEX = [torch.complex64, torch.complex128]
TYPES = FLOATS + INTEGERS + COMPLEX + [torch.bool]
Op = dist.ReduceOp


def data(of, shape, dtype):
    """Rank of's input: small whole numbers, exact in every type and sum."""
    count = torch.Size(shape).numel()
    return ((torch.arange(count) * 3 + of * 5) % 4).reshape(shape).to(dtype)


def inputs(shape, dtype):
    return [data(of, shape, dtype) for of in range(n)]


def reduced(op, tensors):
    """By torch, a rank after the other."""
    truth = tensors[0].dtype == torch.bool
    pairs = {Op.SUM: torch.logical_or if truth else torch.add,
             Op.AVG: torch.add,
             Op.PRODUCT: torch.logical_and if truth else torch.mul,
             Op.MIN: torch.minimum, Op.MAX: torch.maximum, Op.BAND: torch.bitwise_and,
             Op.BOR: torch.bitwise_or, Op.BXOR: torch.bitwise_xor}
    total = tensors[0].clone()
    for tensor in tensors[1:]:
        total = pairs[op](total, tensor)
    return total / n if op == Op.AVG else total


def ops_of(dtype):
    ops = [Op.SUM]
    if dtype not in COMPLEX:        # torch itself has no others
        ops += [Op.PRODUCT, Op.MIN, Op.MAX]
    if dtype in INTEGERS or dtype == torch.bool:
        ops += [Op.BAND, Op.BOR, Op.BXOR]
    else:
        ops.append(Op.AVG)
    return ops


def alike(got, wanted, what):
    """A complex tensor's quotients may differ in their last bit, by where its memory begins."""
    if got.dtype in COMPLEX and torch.allclose(got, wanted, rtol=1e-6):
        return
    same(got, wanted, what)


def reductions(dtype, count):
    for op in ops_of(dtype):
        every = inputs([count], dtype)
        wanted = reduced(op, every)
        what = f"{op} of {count} {dtype}"
        tensor = every[me].clone()
        dist.all_reduce(tensor, op)
        alike(tensor, wanted, "all_reduce " + what)
        tensor = every[me].clone()
        dist.reduce(tensor, n - 1, op)
        alike(tensor, wanted if me == n - 1 else every[me], "reduce " + what)
        table = inputs([n, count], dtype)
        out = torch.zeros(count, dtype=dtype)
        dist.reduce_scatter(out, list(table[me]), op)
        alike(out, reduced(op, table)[me], "reduce_scatter " + what)
        out = torch.zeros(count, dtype=dtype)
        dist.reduce_scatter_tensor(out, table[me].flatten(), op)
        alike(out, reduced(op, table)[me], "reduce_scatter_tensor " + what)
        whole = table[me].flatten().clone()
        dist.reduce_scatter_tensor(whole[me * count:(me + 1) * count], whole, op)
        alike(whole[me * count:(me + 1) * count], reduced(op, table)[me], "reduce_scatter_tensor in place " + what)


def moves(dtype, count):
    what = f"{count} {dtype}"
    root = n // 2
    every = inputs([count], dtype)
    tensor = every[me].clone()
    dist.broadcast(tensor, root)
    same(tensor, every[root], "broadcast " + what)
    outs = [torch.zeros(count, dtype=dtype) for _ in range(n)]
    dist.all_gather(outs, every[me])
    same(torch.stack(outs), torch.stack(every), "all_gather " + what)
    out = torch.zeros(n * count, dtype=dtype)
    dist.all_gather_into_tensor(out, every[me])
    same(out, torch.cat(every), "all_gather_into_tensor " + what)
    out = torch.zeros(n * count, dtype=dtype)
    out[me * count:(me + 1) * count] = every[me]
    dist.all_gather_into_tensor(out, out[me * count:(me + 1) * count])
    same(out, torch.cat(every), "all_gather_into_tensor in place " + what)
    outs = [torch.zeros(count, dtype=dtype) for _ in range(n)] if me == root else None
    dist.gather(every[me], outs, root)
    if me == root:
        same(torch.stack(outs), torch.stack(every), "gather " + what)
    out = torch.zeros(count, dtype=dtype)
    dist.scatter(out, inputs([count], dtype) if me == root else None, root)
    same(out, every[me], "scatter " + what)
    table = inputs([n, count], dtype)
    out = torch.zeros(n, count, dtype=dtype)
    dist.all_to_all_single(out, table[me])
    same(out, torch.stack([table[of][me] for of in range(n)]), "all_to_all_single " + what)
    outs = [torch.zeros(count + of, dtype=dtype) for of in range(n)]
    dist.all_to_all(outs, [data(me * n + to, [count + me], dtype) for to in range(n)])
    for of in range(n):
        same(outs[of], data(of * n + me, [count + of], dtype), "all_to_all " + what)


def uneven():
    """Splits: rank r gives rank q r + q rows, some of them none."""
    give = [me + to for to in range(n)]
    rows = torch.arange(sum(give) * 2, dtype=torch.float64).reshape(-1, 2) + 1000 * me
    out = torch.zeros(sum(give), 2, dtype=torch.float64)
    dist.all_to_all_single(out, rows, give, give)
    at = 0
    for of in range(n):
        begin = sum(of + to for to in range(me))
        wanted = torch.arange(begin * 2, (begin + of + me) * 2, dtype=torch.float64)
        same(out[at:at + of + me], wanted.reshape(-1, 2) + 1000 * of, "all_to_all_single uneven")
        at += of + me
    out = torch.zeros(me + 1)
    dist.reduce_scatter(out, [torch.full((to + 1,), float(me)) for to in range(n)])
    same(out, torch.full((me + 1,), float(sum(range(n)))), "reduce_scatter uneven")


def several_tensors():
    tensors = [data(me, [3], torch.float32), data(me, [2, 2], torch.float32)]
    dist.all_reduce_coalesced(tensors)
    same(tensors[0], reduced(Op.SUM, inputs([3], torch.float32)), "all_reduce_coalesced")
    same(tensors[1], reduced(Op.SUM, inputs([2, 2], torch.float32)), "all_reduce_coalesced")
    outs = [[torch.zeros(3), torch.zeros(1, 2)] for _ in range(n)]
    dist.all_gather_coalesced(outs, [torch.full((3,), float(me)), torch.full((1, 2), 0.5 + me)])
    for of in range(n):
        same(outs[of][0], torch.full((3,), float(of)), "all_gather_coalesced")
        same(outs[of][1], torch.full((1, 2), 0.5 + of), "all_gather_coalesced")
    everything = [None] * n
    dist.all_gather_object(everything, {"rank": me})
    assert everything == [{"rank": of} for of in range(n)]
    box = ["from the root" if me == 0 else None]
    dist.broadcast_object_list(box, 0)
    assert box == ["from the root"]


def strided():
    """Tensors whose elements are not one after the other, and those that need a gradient."""
    base = torch.zeros(4, 6)
    columns = base[:, ::2]
    columns += me
    dist.all_reduce(columns)
    assert torch.equal(columns, torch.full((4, 3), float(sum(range(n))))) and not base[:, 1::2].any()
    turned = data(me, [3, 5], torch.float32).t()
    dist.broadcast(turned, 0)
    same(turned, data(0, [3, 5], torch.float32).t(), "broadcast of a transposed tensor")
    out = torch.zeros(2, n).t()
    dist.all_gather_into_tensor(out, torch.tensor([[float(me), -float(me)]]))
    same(out, torch.tensor([[float(of), -float(of)] for of in range(n)]), "all_gather_into_tensor strided")
    leaf = torch.nn.Parameter(torch.full((3,), float(me)))
    dist.all_reduce(leaf, Op.AVG)
    assert leaf.requires_grad and torch.equal(leaf.detach(), torch.full((3,), (n - 1) / 2))


LONG = 40000        # elements of a block that is not copied


def scattered_tensors(count, dtype=torch.float32):
    """One for each rank, in memory in some order, with gaps between them; strided, of a matrix, every third."""
    order = sorted(range(n), key=lambda of: (of * 5 + 3) % n)
    made = {of: torch.zeros(count, 2, dtype=dtype)[:, 0] if of % 3 == 2 else torch.zeros(count, dtype=dtype)
            for of in order}
    return [made[of] for of in range(n)]


def long_lists(count, dtype=torch.float32):
    """Blocks that are sent from where they are, and received where they belong."""
    every = inputs([count], dtype)
    root = n - 1
    outs = scattered_tensors(count, dtype)
    dist.all_gather(outs, every[me])
    same(torch.stack(outs), torch.stack(every), "all_gather of long blocks")
    outs = scattered_tensors(count, dtype) if me == root else None
    dist.gather(every[me], outs, root)
    if me == root:
        same(torch.stack(outs), torch.stack(every), "gather of long blocks")
    ins = scattered_tensors(count, dtype)
    for of in range(n):
        ins[of].copy_(every[of])
    out = torch.zeros(count, dtype=dtype)
    dist.scatter(out, ins if me == root else None, root)
    same(out, every[me], "scatter of long blocks")
    outs = [torch.zeros(count if of else 0, dtype=dtype) for of in range(n)]
    dist.all_to_all(outs, ins if me else [torch.zeros(0, dtype=dtype)] * n)
    for of in range(1, n):
        same(outs[of], every[me], "all_to_all of long blocks")


def shared_memory_of_lists():
    """A tensor that is an input twice, or an output; outputs that overlap hold the last of them."""
    one = torch.full((LONG,), 7.0)
    out = torch.zeros(LONG)
    dist.scatter(out, [one] * n if me == 0 else None, 0)
    same(out, one, "scatter of one tensor to all")
    outs = [torch.zeros(LONG) for _ in range(n)]
    dist.all_to_all(outs, [torch.full((LONG,), float(me))] * n)
    for of in range(n):
        same(outs[of], torch.full((LONG,), float(of)), "all_to_all of one tensor to all")
    whole = torch.zeros(LONG + n - 1)
    outs = [whole[of:of + LONG] for of in range(n)]
    dist.all_gather(outs, torch.full((LONG,), float(me)))
    same(whole[n - 1:], torch.full((LONG,), float(n - 1)), "all_gather into outputs that overlap")
    same(whole[:n - 1], torch.arange(n - 1.0), "all_gather into outputs that overlap")


def lists_under_way():
    """Lists that the program forgets while they are in flight."""
    works, kept = [], []
    for i in range(4):
        outs = scattered_tensors(LONG)
        works.append(dist.all_gather(outs, torch.full((LONG,), float(i + me)), async_op=True))
        kept.append(outs)
        works.append(dist.all_to_all([torch.zeros(LONG) for _ in range(n)],
                                     [torch.full((LONG,), float(of)) for of in range(n)], async_op=True))
        out = torch.zeros(LONG)
        works.append(dist.scatter(out, [torch.full((LONG,), float(i + of)) for of in range(n)] if me == 0 else None,
                                  0, async_op=True))
        kept.append([out])
    junk = [torch.full((LONG,), -1.0) for _ in range(3 * n)]
    for work in works:
        assert work.wait()
    for i in range(4):
        for of in range(n):
            same(kept[2 * i][of], torch.full((LONG,), float(i + of)), "all_gather in flight")
        same(kept[2 * i + 1][0], torch.full((LONG,), float(i + me)), "scatter in flight")
    del junk


def factor():
    """PREMUL_SUM has a factor of each rank."""
    premul = getattr(dist, "_make_nccl_premul_sum", None)
    if premul is None:
        return
    tensor = torch.full((4,), float(me))
    dist.all_reduce(tensor, premul(0.5))
    same(tensor, torch.full((4,), sum(range(n)) / 2), "PREMUL_SUM of a number")
    # One number a tensor from torch 2 on; before, a list with a tensor that fits.
    of = torch.tensor([3.0]) if torch.__version__ >= "2" else torch.arange(4.0)
    tensor = torch.full((4,), 1.0)
    dist.all_reduce(tensor, premul(of if torch.__version__ >= "2" else [of]))
    same(tensor, n * of.expand(4), "PREMUL_SUM of a tensor")


def messages():
    after, before = (me + 1) % n, (me - 1) % n
    for count in [1, 100, 200000]:
        out = torch.zeros(count)
        works = [dist.isend(torch.full((count,), float(me)), after, tag=9), dist.irecv(out, before, tag=9)]
        for work in works:
            assert work.wait() and work.is_completed()
        same(out, torch.full((count,), float(before)), "recv")
    # A tag is waited for while messages of others pass.
    works = [dist.isend(torch.tensor([tag]), after, tag=tag) for tag in [1, 2]]
    for tag in [2, 1]:
        out = torch.zeros(1, dtype=torch.int64)
        dist.recv(out, before, tag=tag)
        assert out[0] == tag
    for work in works:
        work.wait()
    if me:
        dist.send(torch.tensor([me, me]), 0)
    else:
        seen = set()
        for _ in range(n - 1):
            out = torch.zeros(2, dtype=torch.int64)
            source = dist.recv(out)
            assert out[0] == source
            seen.add(source)
        assert seen == set(range(1, n))
    dist.barrier()


def under_way():
    """Operations in flight together, their futures, and callbacks that wait for others."""
    tensors = [torch.full((1000,), float(i + me)) for i in range(20)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for i, work in reversed(list(enumerate(works))):
        assert work.wait() and work.is_completed() and work.is_success()
        same(tensors[i], torch.full((1000,), float(n * i + sum(range(n)))), "in flight")

    work = dist.all_reduce(torch.ones(3), async_op=True)
    future = work.get_future()
    assert torch.equal(future.wait()[0], torch.full((3,), float(n)))
    assert torch.equal(work.get_future().value()[0], torch.full((3,), float(n)))

    def again(future):
        tensor = future.value()[0]
        dist.all_reduce(tensor, async_op=True).get_future().wait()
        return tensor

    future = dist.all_reduce(torch.ones(2), async_op=True).get_future().then(again)
    same(future.wait(), torch.full((2,), float(n * n)), "a callback that waits")


def groups():
    """Each group has ranks and order of its own; those outside make it too, and are not in it."""
    halves = [dist.new_group(list(range(0, n, 2))), dist.new_group(list(range(1, n, 2)))] if n > 1 else []
    if halves:
        half = halves[me % 2]
        tensor = torch.tensor([me])
        dist.all_reduce(tensor, group=half)
        assert tensor[0] == sum(range(me % 2, n, 2))
        work = dist.all_reduce(torch.ones(1), group=half, async_op=True)
        dist.barrier()
        work.wait()
        dist.destroy_process_group(half)
    tensor = torch.tensor([1])
    dist.all_reduce(tensor)
    assert tensor[0] == n


def refusals():
    refused(ValueError, "broadcast: tensor: there are 2 tensors; valid: 1",
            group.broadcast, [torch.ones(1)] * 2, dist.BroadcastOptions())
    refused(ValueError, f"all|output has 3 elements; valid: {2 * n}",
            dist.all_gather_into_tensor, torch.zeros(3), torch.zeros(2))
    refused(TypeError, "all.*: tensors of Float have no BAND", dist.all_reduce, torch.ones(1), Op.BAND)
    refused(TypeError, "AVG of Long is no Long", dist.all_reduce, torch.ones(1, dtype=torch.int64), Op.AVG)
    maximum = dist.AllreduceOptions()
    maximum.reduceOp = Op.MAX
    refused(TypeError, "ComplexFloat have no MIN, MAX", group.allreduce,
            [torch.ones(1, dtype=torch.complex64)], maximum)
    quantized = torch.quantize_per_tensor(torch.ones(2), 1, 0, torch.qint8)
    # torch 2 itself has no such operation
    refused((TypeError, NotImplementedError), "all|quantized|Quantized", group.allreduce, [quantized])
    refused(ValueError, "reduce_scatter: input: there are 0 tensors|there are", group.reduce_scatter,
            [torch.ones(1)], [[]])
    refused(ValueError, "tag .-1. is out of range", dist.isend, torch.ones(1), (me + 1) % n, tag=-1) \
        if n > 1 else None
    dist.barrier()


me, n = join()
group = dist.distributed_c10d._get_default_group()
for dtype in TYPES:
    for count in [1, 37]:
        reductions(dtype, count)
        moves(dtype, count)
for dtype in [torch.float32, torch.uint8, torch.complex128]:
    long_lists(LONG * 4, dtype)
moves(torch.float32, 0)
reductions(torch.float32, 100003)
for check in [uneven, several_tensors, strided, shared_memory_of_lists, lists_under_way, factor, messages, under_way, groups, refusals]:
    check()
dist.destroy_process_group()
print(f"rank {me} of {n}: good", flush=True)
