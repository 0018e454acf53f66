// SPDX-License-Identifier: GPL-2.0
/* Tracepoints: the kernel's, found by name, and our own. */
#define pr_fmt(fmt) "coll: " fmt

#include <linux/string.h>

#include "trace.h"

#define CREATE_TRACE_POINTS
#include "coll_events.h"

struct probe_lookup {
	struct kcoll_probe *probes;
	size_t count;
};

static void probe_look_up(struct tracepoint *tracepoint, void *data)
{
	struct probe_lookup *lookup = data;
	size_t i;

	for (i = 0; i < lookup->count; i++)
		if (!strcmp(tracepoint->name, lookup->probes[i].name))
			lookup->probes[i].tracepoint = tracepoint;
}

static int probe_attach(struct kcoll_probe *probe, void *data)
{
	int error;

	if (!probe->tracepoint) {
		if (probe->optional)
			return 0;
		pr_err("this kernel has no tracepoint %s\n", probe->name);
		return -ENOENT;
	}
	error = tracepoint_probe_register(probe->tracepoint, probe->function, data);
	probe->attached = !error;
	return error;
}

int kcoll_probes_attach(struct kcoll_probe *probes, size_t count, void *data)
{
	struct probe_lookup lookup = { .probes = probes, .count = count };
	size_t i;
	int error;

	for_each_kernel_tracepoint(probe_look_up, &lookup);
	for (i = 0; i < count; i++) {
		error = probe_attach(&probes[i], data);
		if (error) {
			kcoll_probes_detach(probes, count, data);
			return error;
		}
	}
	return 0;
}

void kcoll_probes_detach(struct kcoll_probe *probes, size_t count, void *data)
{
	size_t i;

	for (i = count; i-- > 0;) {
		if (probes[i].attached)
			tracepoint_probe_unregister(probes[i].tracepoint, probes[i].function, data);
		probes[i].attached = false;
	}
	tracepoint_synchronize_unregister();
}
