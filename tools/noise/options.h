/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Values of collnoise's options. Each says on stderr what is wrong and what is
 * valid, and returns false.
 */
#ifndef COLL_NOISE_OPTIONS_H
#define COLL_NOISE_OPTIONS_H

#include <stdio.h>

#include "tools/common/arguments.h"
#include "node/cpus.h"
#include "policy.h"
#include "node/units.h"

/* From `least` to `most` ns; a bare number is in `unit`. */
bool noise_option_time(const char *command, const char *what, const char *text, u64 unit, u64 least,
		 u64 most, u64 *ns);
bool noise_option_cpus(const char *command, const char *what, const char *text, struct noise_cpus *cpus);
bool noise_option_share(const char *command, const char *what, const char *text, double *share);
bool noise_option_real(const char *command, const char *what, const char *text, double least, double most,
		 double *value);
bool noise_option_policy(const char *command, const char *what, const char *text,
		   struct noise_policy *policy);

/* No argument is left; else one is said to be too many. */
bool noise_option_no_more(const char *command, int argc, char **argv);

#endif
