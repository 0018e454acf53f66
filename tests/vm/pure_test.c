// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The pure parts in the kernel compute, to the bit, what they do in user space. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/noise/noise.h"
#include "core/reduce.h"
#include "tests/vm/pure/digest.h"
#include "vm.h"

int main(void)
{
	static const char *const names[PURE_DIGESTS] = {
		[PURE_PLANS] = "every kind of plan has the same events",
		[PURE_SEEKS] = "also where it is entered in the middle",
		[PURE_REFUSALS] = "the same models are refused, for the same reasons",
		[PURE_INTEGERS] = "reductions of integers are the same",
		[PURE_FLOATS] = "and of floating point numbers",
	};
	char text[400] = "", *at = text;
	unsigned long long here, there;

	vm_is(vm_insert("/pure.ko", ""), 0, "core/ is in the kernel by itself");
	vm_is(vm_read("/sys/module/pure/parameters/digest", text, sizeof(text)), 0, "and says what it computes");
	for (int i = 0; i < PURE_DIGESTS; i++) {
		there = strtoull(at, &at, 10);
		at += *at == ',';
		here = pure_digest(i);
		if (!vm_ok(here && here == there, "%s", names[i]))
			vm_note("%llx here, %llx there", here, there);
	}
	vm_is(syscall(SYS_delete_module, "pure", O_NONBLOCK) ? -errno : 0, 0, "it goes");
	return vm_end();
}
