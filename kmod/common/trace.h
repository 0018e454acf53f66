/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Probes on the kernel's tracepoints, which it does not export: they are looked
 * up by name. Probes cost each event something, so they are attached only while
 * somebody asks for what they see.
 *
 * A probe takes preempt_disable_notrace() itself: since 7.0 the kernel calls it
 * with preemption on. It may run in any context, under any lock.
 */
#ifndef COLL_KMOD_TRACE_H
#define COLL_KMOD_TRACE_H

#include <linux/tracepoint.h>

struct kcoll_probe {
	const char *name;	/* of the tracepoint */
	void *function;		/* (void *data, the tracepoint's arguments) */
	bool optional;		/* some kernels do not have it */
	struct tracepoint *tracepoint;
	bool attached;
};

/*
 * Stops the build if `function` does not have the prototype of that tracepoint
 * in these headers: the lookup by name could not tell.
 */
#define COLL_PROBE_CHECK(event, function)						\
	static void __maybe_unused check_##function##_##event(void)			\
	{										\
		check_trace_callback_type_##event(function);				\
	}										\
	static_assert(true)

/*
 * Attaches all of them or none: -ENOENT if the kernel lacks one that is not
 * optional. Sleeps. After detach no probe runs any more.
 */
int kcoll_probes_attach(struct kcoll_probe *probes, size_t count, void *data);
void kcoll_probes_detach(struct kcoll_probe *probes, size_t count, void *data);

#endif
