/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
#ifndef COLL_DOCTOR_PROBE_TCP_H
#define COLL_DOCTOR_PROBE_TCP_H

#include "facts.h"

/* 1 MB over loopback and one byte back: by the system's congestion control and by reno, in turn. */
void doctor_probe_tcp(struct doctor_probes *probes);

/* Sorts the samples. */
double doctor_median(double *sample, u32 count);

#endif
