/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Readers of values that only options of collnoise have (tools/common/options.h). */
#ifndef COLL_NOISE_OPTIONS_H
#define COLL_NOISE_OPTIONS_H

#include "tools/common/options.h"
#include "node/cpus.h"
#include "policy.h"
#include "node/units.h"

/* A list of online CPUs; a share of the time, "2.5%" or "0.025"; a scheduling policy. */
option_reader noise_option_cpus, noise_option_share, noise_option_policy;

#define NOISE_OPTION_CPUS(type, field) .read = noise_option_cpus, OPTION_FIELD(type, field)
#define NOISE_OPTION_SHARE(type, field) .read = noise_option_share, OPTION_FIELD(type, field)
#define NOISE_OPTION_POLICY(type, field) .read = noise_option_policy, OPTION_FIELD(type, field)

#endif
