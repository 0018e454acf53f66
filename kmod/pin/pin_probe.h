/* SPDX-License-Identifier: GPL-2.0 */
/* What probes have seen of tasks, for pin_tasks.c. */
#ifndef COLL_KMOD_PIN_PROBE_H
#define COLL_KMOD_PIN_PROBE_H

#include <linux/llist.h>

#include "pin.h"

enum kcoll_pin_sighting_kind {
	COLL_PIN_SEEN,		/* the task may match */
	COLL_PIN_SEEN_PROCESS,	/* all threads of its process may */
	COLL_PIN_SEEN_EXIT,
};

struct pin_sighting {
	struct llist_node node;
	struct task_struct *task;	/* holds a reference */
	enum kcoll_pin_sighting_kind kind;
	char comm[TASK_COMM_LEN];
};

/* What probes match tasks with, and the thread that they wake up. pin_tasks.c sets both. */
extern struct pin_rules __rcu *kcoll_pin_rules;
extern struct task_struct *kcoll_pin_thread;

/* Whether the first rule that the task matches now moves it: not one that keeps. Any context. */
bool kcoll_pin_matches(struct task_struct *task, const char *comm);

/* The sightings so far, oldest first: each is to be freed. Tasks may wait for the round's end. Under the mutex. */
struct llist_node *kcoll_pin_round_begin(void);
void kcoll_pin_round_end(void);
void kcoll_pin_sighting_free(struct pin_sighting *sight);
/* Whether there are any, or some were missed. */
bool kcoll_pin_seen_any(void);
/* Whether some were missed: then all tasks are looked at. Asked once. */
bool kcoll_pin_seen_too_many(void);

/*
 * A CPU has gone offline or come: all tasks are looked at now, or within a second if others have
 * just done so. Those that wait for one that comes are looked at again when it is active.
 */
int kcoll_pin_cpu_changed(unsigned int cpu);

/* Memory for probes: before they are attached, and often. May sleep. */
int kcoll_pin_reserve(void);
int kcoll_pin_probes_attach(void);
void kcoll_pin_probes_detach(void);
/* Frees sightings and memory. When no probe is attached. */
void kcoll_pin_probes_end(void);
/* Before the module goes: no task has a call into it left. */
void kcoll_pin_probes_wait(void);

#endif
