# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""usage: PYTHONPATH=build/torch torch_peers.py [--ranks 2] [--rounds 20] [--seconds 10] [--sizes 8,65536,...] [--calls all_reduce,...] [--json]

PyTorch's collectives over the backends coll and gloo, in turn within each round, on this node; and a step
of a small model under DistributedDataParallel (ddp). A round of a backend is some calls; its time is that
of the slowest rank by call. Bytes are those of one rank's tensor, of all blocks. For each cell: medians and
99th percentiles in us, coll's median by gloo's, and the spread, (p75 - p25) / median, of coll's. A cell has
fewer rounds, at least three, once it has taken so many seconds. Sizes whose tensors would take more than half of
the memory that is free are left out.
"""
import argparse
import json
import math
import os
import statistics
import tempfile
import time

CALLS, CALL_BYTES = 20, 4 << 20     # of one backend in one round: fewer of those that are long
ROUNDS_LEAST = 3
TENSORS = 10                        # of a size that a rank has at once, those of the backends among them
ELEMENT = 4


def cells(ranks, size):
    """Name: what makes a call of a group, given torch.distributed, the group and tensors of that many bytes."""
    import torch
    import torch.distributed as dist
    me = dist.get_rank()
    count = max(size // ELEMENT, 1)
    block = max(count // ranks, 1)
    one, whole, part = torch.zeros(count), torch.zeros(block * ranks), torch.zeros(block)
    blocks, other = list(whole.split(block)), torch.zeros(block * ranks)
    mine = blocks if not me else None
    after, before = (me + 1) % ranks, (me - 1) % ranks

    def ring(group):
        works = [dist.isend(one, after, group=group), dist.irecv(incoming, before, group=group)]
        for work in works:
            work.wait()
    incoming = torch.zeros(count)
    return {
        "all_reduce": lambda group: dist.all_reduce(one, group=group),
        "broadcast": lambda group: dist.broadcast(one, 0, group=group),
        "reduce": lambda group: dist.reduce(one, 0, group=group),
        "all_gather": lambda group: dist.all_gather(blocks, part, group=group),
        "gather": lambda group: dist.gather(part, mine, 0, group=group),
        "scatter": lambda group: dist.scatter(part, mine, 0, group=group),
        "reduce_scatter": lambda group: dist.reduce_scatter(part, blocks, group=group),
        "all_to_all_single": lambda group: dist.all_to_all_single(other, whole, group=group),
        "send_recv": ring,
    }


def ddp_step(group):
    """A step of a model of 200 KB, with gradients in several buckets."""
    import torch
    from torch.nn.parallel import DistributedDataParallel
    torch.manual_seed(1)
    layers = [torch.nn.Linear(128, 128) for _ in range(3)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers), process_group=group, bucket_cap_mb=0.06)
    rows = torch.ones(16, 128)

    def step():
        model(rows).sum().backward()
    return step


def time_of(call, calls, control):
    """us of a call, by the slowest rank. `control`: a group that is not measured."""
    import torch
    import torch.distributed as dist
    dist.barrier(group=control)
    began = time.perf_counter_ns()
    for _ in range(calls):
        call()
    slowest = torch.tensor([(time.perf_counter_ns() - began) / calls / 1000])
    dist.all_reduce(slowest, dist.ReduceOp.MAX, group=control)
    return slowest.item()


def cell_times(calls_of, calls, rounds, seconds, control):
    """By backend; {} where gloo has no such collective, as all its ranks say at once. All ranks stop together, as
    they have the same times."""
    times = {name: [] for name in calls_of}
    try:
        for call in calls_of.values():
            call()      # the first connects
    except RuntimeError as error:
        if "support" not in str(error):
            raise
        return {}
    for i in range(rounds):
        for name in sorted(calls_of, reverse=bool(i % 2)):
            times[name].append(time_of(calls_of[name], calls, control))
        if i >= ROUNDS_LEAST - 1 and calls * sum(map(sum, times.values())) > seconds * 1e6:
            break
    return times


def percentile(times, part):
    return sorted(times)[min(len(times) - 1, math.ceil(part * len(times)) - 1)]


def row_of(what, size, ranks, times):
    row = {"call": what, "bytes": size, "ranks": ranks, "rounds": len(times["coll"])}
    for name, of in times.items():
        row[name] = {"median_us": statistics.median(of), "p99_us": percentile(of, 0.99),
                     "spread": (percentile(of, 0.75) - percentile(of, 0.25)) / statistics.median(of)}
    row["ratio"] = row["coll"]["median_us"] / row["gloo"]["median_us"]
    return row


def row_print(row):
    coll, gloo = row["coll"], row["gloo"]
    print(f"{row['call']:18} {row['bytes']:10} {coll['median_us']:11.1f} {gloo['median_us']:11.1f}"
          f" {row['ratio']:6.2f} {coll['p99_us']:11.1f} {gloo['p99_us']:11.1f} {coll['spread']:6.2f}", flush=True)


def summary(rows):
    worst = max(rows, key=lambda row: row["ratio"])
    return {"cells": len(rows), "geometric_mean": statistics.geometric_mean(row["ratio"] for row in rows),
            "above_1": sum(row["ratio"] > 1 for row in rows), "worst": worst, "load": os.getloadavg()}


def measure(arguments, groups, control, rank):
    rows = []

    def add(what, size, calls_of, calls):
        times = cell_times(calls_of, calls, arguments.rounds, arguments.seconds, control)
        if not times or rank:
            return
        rows.append(row_of(what, size, arguments.ranks, times))
        if not arguments.json:
            row_print(rows[-1])

    for name in arguments.calls:
        for size in arguments.sizes if name != "ddp" else []:
            call = cells(arguments.ranks, size)[name]
            add(name, size, {of: lambda group=group: call(group) for of, group in groups.items()},
                max(1, min(CALLS, CALL_BYTES // size)))
    if "ddp" in arguments.calls:
        add("ddp", 198144, {of: ddp_step(group) for of, group in groups.items()}, CALLS // 4)
    return rows


def rank_main(rank, arguments, store):
    import torch
    import torch.distributed as dist
    import coll_torch

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=arguments.ranks)
    groups = {name: dist.new_group(backend=name) for name in ["coll", "gloo"]}
    if not rank and not arguments.json:
        print(f"PyTorch {torch.__version__}, {arguments.ranks} ranks on one node, {arguments.rounds} rounds, load"
              f" {os.getloadavg()[0]:.1f}")
        print("call                    bytes     coll us     gloo us  ratio    coll p99    gloo p99 spread")
    rows = measure(arguments, groups, dist.group.WORLD, rank)
    if not rank and arguments.json:
        print(json.dumps({"torch": torch.__version__, "rows": rows, "summary": summary(rows)}, indent=1))
    elif not rank:
        of = summary(rows)
        print(f"geometric mean of {of['cells']} ratios {of['geometric_mean']:.2f}; above 1: {of['above_1']}; worst"
              f" {of['worst']['ratio']:.2f}, {of['worst']['call']} of {of['worst']['bytes']} bytes")
    dist.destroy_process_group()


def that_fit(sizes, ranks):
    with open("/proc/meminfo") as lines:
        free = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable"))
    return [size for size in sizes if size * ranks * TENSORS <= free / 2]


def listed(kind):
    return lambda text: [kind(word) for word in text.split(",")]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--sizes", type=listed(int), default=[8, 65536, 1 << 20, 16 << 20, 64 << 20])
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--calls", type=listed(str), default=["all_reduce", "broadcast", "reduce", "all_gather",
                        "gather", "scatter", "reduce_scatter", "all_to_all_single", "send_recv", "ddp"])
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    arguments.sizes = that_fit(arguments.sizes, arguments.ranks)
    import torch.multiprocessing as processes
    with tempfile.TemporaryDirectory() as folder:
        processes.spawn(rank_main, (arguments, os.path.join(folder, "store")), arguments.ranks)
