// SPDX-License-Identifier: GPL-2.0
/* The injectors that there are. */
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>

#include "noise.h"

/* Of the injectors; taken after cpus_read_lock(). */
DEFINE_MUTEX(kcoll_noise_mutex);
DEFINE_SPINLOCK(kcoll_noise_lock);
LIST_HEAD(kcoll_noise_injectors);

struct kcoll_noise_injector *kcoll_noise_find(u32 id)
{
	struct kcoll_noise_injector *injector;

	list_for_each_entry(injector, &kcoll_noise_injectors, list)
		if (injector->id == id)
			return injector;
	return NULL;
}
