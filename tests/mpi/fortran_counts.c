// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Functions that Fortran programs need of mpitest.h. */
#include "mpitest.h"

void must_count_(const int *ours, const int *handed);

void must_count_(const int *ours, const int *handed)
{
	must_have_counted(*ours, *handed, "Fortran");
}
