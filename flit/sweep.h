/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Many runs in parallel, in `workers` processes. The results do not depend on their number. */
#ifndef FLIT_SWEEP_H
#define FLIT_SWEEP_H

#include "flit.h"

/* Results of `count` runs; flit_sweep_free() them. NULL: no memory. */
struct flit_result *flit_sweep(const struct flit_config *config, u32 count, u32 workers,
			       void (*progress)(u32 done, u32 count));
void flit_sweep_free(struct flit_result *result, u32 count);

#endif
