// SPDX-License-Identifier: GPL-2.0
/* Memory of runs. A loaded schedule keeps one idle run: the next start allocates nothing. */
#include <linux/mm.h>
#include <linux/slab.h>

#include "core/port.h"
#include "kmod/common/subsystem.h"
#include "run.h"

void kcoll_run_free(struct kcoll_run *run)
{
	kcoll_memory_put(run->buffer[COLL_SCRATCH]);
	kcoll_memory_account(&run->loaded->group->device->account, run->accounted, false);
	kvfree(run);
}

static struct kcoll_run *run_make(struct kcoll_loaded *loaded)
{
	const struct coll_schedule *s = loaded->schedule;
	struct kcoll_device *device = loaded->group->device;
	const u64 head = ALIGN(sizeof(struct kcoll_run), 32);
	const u64 sends = (u64)loaded->sends * sizeof(struct kcoll_sending);
	const u64 step = ALIGN(coll_step_bytes(&loaded->plan), 8);
	const u64 per_op = sizeof(u64) + sizeof(u32) + sizeof(u8);
	const u64 bytes = head + sends + step + s->ops * per_op;
	const u64 pages = DIV_ROUND_UP(bytes, PAGE_SIZE);
	struct kcoll_run *run;
	struct kcoll_memory *scratch;
	u32 i, sent = 0;
	void *memory;

	if (kcoll_memory_account(&device->account, pages, true))
		return ERR_PTR(-ENOMEM);
	run = kvzalloc(bytes, COLL_GFP);
	scratch = run ? kcoll_memory_make(&device->account, s->buffer[COLL_SCRATCH]) :
			ERR_PTR(-ENOMEM);
	if (IS_ERR(scratch)) {
		kvfree(run);
		kcoll_memory_account(&device->account, pages, false);
		return ERR_CAST(scratch);
	}
	run->accounted = pages;
	run->loaded = loaded;
	INIT_LIST_HEAD(&run->fresh);
	run->buffer[COLL_SCRATCH] = scratch;
	memory = run;
	run->sends = memory + head;
	memory += head + sends;
	coll_step_init(&run->step, &loaded->plan, memory);
	run->got = memory + step;
	run->send_of = (u32 *)(run->got + s->ops);
	run->arrived = (u8 *)(run->send_of + s->ops);
	for (i = 0; i < s->ops; i++) {
		if (coll_ops(s)[i].kind != COLL_OP_SEND)
			continue;
		run->sends[sent].run = run;
		run->sends[sent].op = i;
		run->send_of[i] = sent++;
	}
	return run;
}

struct kcoll_run *kcoll_run_take(struct kcoll_loaded *loaded)
{
	struct kcoll_run *run = loaded->spare;

	lockdep_assert_held(&loaded->group->device->lock);
	if (!run)
		return run_make(loaded);
	loaded->spare = NULL;
	coll_step_reset(&run->step);
	memset(run->arrived, 0, loaded->schedule->ops);
	memset(run->got, 0, loaded->schedule->ops * sizeof(*run->got));
	run->completed = false;
	run->reported = false;
	return run;
}

void kcoll_run_give(struct kcoll_run *run)
{
	lockdep_assert_held(&run->loaded->group->device->lock);
	coll_assert(!run->in_flight);
	if (run->loaded->spare)
		kcoll_run_free(run);
	else
		run->loaded->spare = run;
}
