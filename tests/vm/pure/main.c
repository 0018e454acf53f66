// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* core/ in the kernel: /sys/module/pure/parameters/digest says what it computes there. */
#include <linux/module.h>
#include "kmod/common/compat.h"

#include "core/noise/noise.h"
#include "core/reduce.h"
#include "digest.h"

static unsigned long long digest[PURE_DIGESTS];
module_param_array(digest, ullong, NULL, 0444);

static int __init pure_init(void)
{
	int i;

	for (i = 0; i < PURE_DIGESTS; i++) {
		if (i == PURE_FLOATS)
			kernel_fpu_begin();
		digest[i] = pure_digest(i);
		if (i == PURE_FLOATS)
			kernel_fpu_end();
	}
	return 0;
}

static void __exit pure_exit(void)
{
}

module_init(pure_init);
module_exit(pure_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("what core/ computes in the kernel");
