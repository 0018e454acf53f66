/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The MPI below us. Its functions are looked up in its library by handle: we define
 * functions of the same names, and a program may have loaded the MPI where
 * dlsym(RTLD_NEXT) does not find it.
 */
#ifndef COLLMPI_REAL_H
#define COLLMPI_REAL_H

#include <mpi.h>
#if defined(OPEN_MPI) && OPEN_MPI
#include <mpi-ext.h>
#endif

#include "functions.h"

/* Which persistent collectives there are: MPI 4's, Open MPI's forerunners, none. */
#if HAVE_MPI_4_NAMES
#define HAVE_INIT 1
#define INIT_NAME(Name) MPI_##Name##_init
#define INIT_PNAME(Name) PMPI_##Name##_init
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ) && OMPI_HAVE_MPI_EXT_PCOLLREQ
#define HAVE_INIT 1
#define INIT_NAME(Name) MPIX_##Name##_init
#define INIT_PNAME(Name) PMPIX_##Name##_init
#else
#define HAVE_INIT 0
#endif

#define REAL_FUNCTION(Name) __typeof__(MPI_##Name) *Name;
#define REAL_FORMS(Name, name)            \
	__typeof__(MPI_##Name) *Name;     \
	__typeof__(MPI_I##name) *I##name; \
	REAL_INIT(Name)
#if HAVE_INIT
#define REAL_INIT(Name) __typeof__(INIT_NAME(Name)) *Name##_init;
#else
#define REAL_INIT(Name)
#endif
#define REAL_LARGE(Name, name)                    \
	__typeof__(MPI_##Name##_c) *Name##_c;     \
	__typeof__(MPI_I##name##_c) *I##name##_c; \
	__typeof__(MPI_##Name##_init_c) *Name##_init_c;

struct real {
	EACH_FUNCTION(REAL_FUNCTION)
	EACH_LATE_FUNCTION(REAL_FUNCTION)
	EACH_LARGE_FUNCTION(REAL_FUNCTION)
	EACH_COLLECTIVE(REAL_FORMS)
#if HAVE_LARGE
	EACH_DATA_COLLECTIVE(REAL_LARGE)
#endif
};

/* Filled in when the library is loaded, then constant. */
extern struct real real;

/*
 * The Fortran of Open MPI 5 takes a request of a nonblocking or persistent collective with arrays
 * for one that the MPI itself has made, and writes behind its end where it is another's.
 */
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5
#define FORTRAN_WRITES_REQUESTS true
#else
#define FORTRAN_WRITES_REQUESTS false
#endif

/*
 * Open MPI's Fortran calls PMPI functions, and MPICH's mpi_f08 calls some of them, so we
 * define those names as well. Our own calls of the MPI go through `real`.
 */
#define ALSO_TEXT(function) #function
#define ALSO(name, function) \
	extern __typeof__(function) name __attribute__((alias(ALSO_TEXT(function))));

#endif
