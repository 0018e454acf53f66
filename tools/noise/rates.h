/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A capture in short form: the rate of events of about the same length. */
#ifndef COLL_NOISE_RATES_H
#define COLL_NOISE_RATES_H

#include "algo/common/algo.h"
#include "node/capture.h"

/*
 * The mean rates of a CPU, shortest length first. Lengths within a factor of four are one kind,
 * with their mean. Unused kinds have rate 0.
 */
void noise_rates(const struct node_capture *capture,
		 struct coll_noise_rate rate[COLL_NOISES_MAX]);

/* As libcoll's option `noise` takes it: "1003x2.1us+0.5x4ms". */
void noise_rates_print(const struct coll_noise_rate rate[COLL_NOISES_MAX], FILE *to);

/* A file for COLL_CONFIG. Errors are reported on stderr. 0 or -errno. */
int noise_rates_write(const char *command, const struct node_capture *capture, const char *path);

#endif
