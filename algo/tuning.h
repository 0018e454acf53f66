/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Options of an algorithm as text: "T=2,segment=64K", the part after the colon wherever
 * a person names an algorithm, as in `NAME:T=2,segment=64K`.
 */
#ifndef COLL_TUNING_H
#define COLL_TUNING_H

#include "algo/common/algo.h"

/*
 * Adds the options in `text` to *tuning; what it does not name stays as it is,
 * so start from COLL_TUNING_UNSET. Sizes take the suffixes K, M and G (2^10 ..).
 * `algo` NULL: every option there is may be named. Returns 0, or -EINVAL with
 * `why` saying which option is wrong and what is valid; *tuning is then
 * unchanged.
 */
int coll_tuning_parse(const struct coll_algo *algo, const char *text, struct coll_tuning *tuning,
		      char *why, size_t bytes);

/* Whether the algorithm understands the option "T", "segment", ... */
bool coll_algo_has_option(const struct coll_algo *algo, const char *key);

/* "T=2,segment=65536": what is set; "" if nothing is. Returns `text`. */
const char *coll_tuning_print(const struct coll_tuning *tuning, char *text, size_t bytes);

#endif
