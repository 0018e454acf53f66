# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""A model trained by several ranks with PyTorch, over the backend "coll".

    torchrun --nproc_per_node 4 train.py
"""
import coll_torch                       # has torch.distributed know "coll"
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("coll")
torch.manual_seed(dist.get_rank())
model = DistributedDataParallel(torch.nn.Linear(8, 1))
descent = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(100):
    rows = torch.randn(16, 8)           # each rank has others
    loss = (model(rows) - rows.sum(1, keepdim=True)).square().mean()
    descent.zero_grad()
    loss.backward()                     # gradients become the mean of all ranks' meanwhile
    descent.step()
loss = loss.detach()
dist.all_reduce(loss, dist.ReduceOp.AVG)
print(f"rank {dist.get_rank()} of {dist.get_world_size()}: the loss is {loss:.6f}", flush=True)
dist.destroy_process_group()
