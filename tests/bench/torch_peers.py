# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""usage: PYTHONPATH=build/torch torch_peers.py [--ranks 2] [--rounds 50] [--sizes 8,65536,...]

all_reduce of PyTorch over the backends coll and gloo, in turn within each round, on this node: medians
in us, and gloo's by coll's.
"""
import argparse
import os
import statistics
import tempfile
import time

CALLS = 20      # of one backend in one round


def time_of(tensor, group, dist):
    """us of a call, by the slowest rank."""
    import torch
    dist.barrier(group=group)
    began = time.perf_counter_ns()
    for _ in range(CALLS):
        dist.all_reduce(tensor, group=group)
    slowest = torch.tensor([(time.perf_counter_ns() - began) / CALLS / 1000])
    dist.all_reduce(slowest, dist.ReduceOp.MAX, group=group)
    return slowest.item()


def rank_main(rank, arguments, store):
    import torch
    import torch.distributed as dist
    import coll_torch

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=arguments.ranks)
    groups = {name: dist.new_group(backend=name) for name in ["coll", "gloo"]}
    if not rank:
        print(f"all_reduce of float32, {arguments.ranks} ranks on one node, medians of {arguments.rounds} rounds")
        print("     bytes     coll us     gloo us  gloo/coll")
    for size in arguments.sizes:
        tensor = torch.zeros(size // 4)
        times = {name: [] for name in groups}
        for _ in range(arguments.rounds + 1):   # the first connects
            for name, group in groups.items():
                times[name].append(time_of(tensor, group, dist))
        coll, gloo = (statistics.median(times[name][1:]) for name in ["coll", "gloo"])
        if not rank:
            print(f"{size:10} {coll:11.1f} {gloo:11.1f} {gloo / coll:10.2f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--sizes", type=lambda text: [int(size) for size in text.split(",")],
                        default=[8, 1024, 65536, 1 << 20, 16 << 20])
    arguments = parser.parse_args()
    import torch.multiprocessing as processes
    with tempfile.TemporaryDirectory() as folder:
        processes.spawn(rank_main, (arguments, os.path.join(folder, "store")), arguments.ranks)
