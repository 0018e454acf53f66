/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Where memory is overcommitted, an array that does not fit would end the process. */
#ifndef COLL_SIM_MEMORY_H
#define COLL_SIM_MEMORY_H

#include <unistd.h>

#include "core/port.h"

/* Bytes that the simulator may take of this machine's memory: three quarters. */
static inline u64 memory_usable(void)
{
	return (u64)sysconf(_SC_PHYS_PAGES) / 4 * 3 * sysconf(_SC_PAGESIZE);
}

#endif
