// SPDX-License-Identifier: GPL-2.0
/* The CPUs that are watched. */
#include "watch.h"

DEFINE_MUTEX(kcoll_watch_mutex);
DEFINE_PER_CPU(struct watch_cpu *, kcoll_watch_records);
DEFINE_PER_CPU(struct watch_cpu *, kcoll_watched);
