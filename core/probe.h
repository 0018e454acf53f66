/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Static probes for bpftrace, perf and SystemTap, in user space: an instruction that does nothing
 * until a tracer is attached. Without <sys/sdt.h> (Debian: systemtap-sdt-dev) at build they are
 * left out. coll-show(1) lists them.
 */
#ifndef COLL_PROBE_H
#define COLL_PROBE_H

#if !defined(__KERNEL__) && !defined(COLL_NO_PROBES) && defined(__has_include)
#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#define COLL_PROBE2(provider, name, a, b)		DTRACE_PROBE2(provider, name, a, b)
#define COLL_PROBE3(provider, name, a, b, c)		DTRACE_PROBE3(provider, name, a, b, c)
#define COLL_PROBE5(provider, name, a, b, c, d, e)	DTRACE_PROBE5(provider, name, a, b, c, d, e)
#endif
#endif

#ifndef COLL_PROBE2
#define COLL_PROBE2(provider, name, a, b)		((void)(a), (void)(b))
#define COLL_PROBE3(provider, name, a, b, c)		((void)(a), (void)(b), (void)(c))
#define COLL_PROBE5(provider, name, a, b, c, d, e) \
	((void)(a), (void)(b), (void)(c), (void)(d), (void)(e))
#endif

#endif
