# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""DistributedDataParallel over a small model: all ranks have the same bits, and those of one process."""
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from group import join, same

STEPS, ROWS = 5, 4


def make():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(6, 32), torch.nn.Tanh(), torch.nn.Linear(32, 3)).double()


def batch(step, rank):
    generator = torch.Generator().manual_seed(1000 * step + rank)
    return (torch.randn(ROWS, 6, generator=generator, dtype=torch.double),
            torch.randn(ROWS, 3, generator=generator, dtype=torch.double))


def train(model, ranks):
    """On the batches of these ranks."""
    descent = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        rows, wanted = map(torch.cat, zip(*[batch(step, rank) for rank in ranks]))
        descent.zero_grad()
        torch.nn.functional.mse_loss(model(rows), wanted).backward()
        descent.step()
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


me, n = join()
plain = make()
with torch.no_grad():
    for parameter in plain.parameters():
        parameter += me         # DDP begins with those of rank 0
# Buckets of a few hundred bytes, so that several are in flight.
shared = train(DistributedDataParallel(plain, bucket_cap_mb=0.0005), [me])
every = [torch.zeros_like(shared) for _ in range(n)]
dist.all_gather(every, shared)
for other in every:
    same(other, shared, "the model of another rank")
assert torch.allclose(shared, train(make(), range(n)), rtol=0, atol=1e-12)
dist.destroy_process_group()
print(f"rank {me} of {n}: good", flush=True)
