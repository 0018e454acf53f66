/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Small measurements of the node, together below three seconds. */
#ifndef COLL_DOCTOR_PROBE_H
#define COLL_DOCTOR_PROBE_H

#include "facts.h"

/* Nothing is measured yet. */
void doctor_probes_clear(struct doctor_probes *probes);
/* Of the node as it is read already. `step` is told what is measured next. */
void doctor_probe(struct doctor_facts *facts, void (*step)(const char *what));

#endif
