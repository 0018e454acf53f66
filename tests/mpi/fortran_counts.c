// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Functions that Fortran programs need of mpitest.h. */
#include "mpitest.h"

/* Of one nonblocking collective with counts: how often the shim hands it to this MPI. */
int handed_with_counts_(void);

int handed_with_counts_(void)
{
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5
	return 1;
#else
	return 0;
#endif
}

void must_count_(const int *ours, const int *handed);

void must_count_(const int *ours, const int *handed)
{
	must_have_counted(*ours, *handed, "Fortran");
}
