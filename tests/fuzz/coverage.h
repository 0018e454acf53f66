/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Which blocks of code an input runs through, and how often. It needs objects compiled with
 * -fsanitize-coverage=trace-pc (make check-fuzz-long); without them nothing is counted.
 */
#ifndef TESTS_FUZZ_COVERAGE_H
#define TESTS_FUZZ_COVERAGE_H

#include <stdbool.h>

void coverage_begin(void);
/* Since begin(): a block that no input has run before, or none so often. */
bool coverage_is_new(void);
/* Forgets all inputs. */
void coverage_forget(void);
/* Blocks that any input has run. */
unsigned int coverage_blocks(void);

#endif
