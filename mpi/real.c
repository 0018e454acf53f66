// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "real.h"

struct real real;

static const struct {
	const char *name;
	void *slot;
} functions[] = {
#define NAMED(Name) { "PMPI_" #Name, &real.Name },
	EACH_FUNCTION(NAMED)
	EACH_LATE_FUNCTION(NAMED)
	EACH_LARGE_FUNCTION(NAMED)
#define TEXT(name) #name
#define TEXT_OF(name) TEXT(name)
#define FORM_NAMES(Name, name) \
	{ "PMPI_" #Name, &real.Name }, { "PMPI_I" #name, &real.I##name }, INIT_NAMED(Name)
#if HAVE_INIT
#define INIT_NAMED(Name) { TEXT_OF(INIT_PNAME(Name)), &real.Name##_init },
#else
#define INIT_NAMED(Name)
#endif
	EACH_COLLECTIVE(FORM_NAMES)
#if HAVE_LARGE
#define LARGE_NAMES(Name, name)                                                          \
	{ "PMPI_" #Name "_c", &real.Name##_c }, { "PMPI_I" #name "_c", &real.I##name##_c }, \
	{ "PMPI_" #Name "_init_c", &real.Name##_init_c },
	EACH_DATA_COLLECTIVE(LARGE_NAMES)
#endif
};

static void real_die(const char *what, const char *why)
{
	fprintf(stderr, "libcollmpi: %s%s\n", what, why ? why : "");
	_exit(127);
}

/* What Open MPI's library has and no other's. */
static bool is_open_mpi(void *library)
{
	return dlsym(library, "ompi_mpi_comm_world");
}

#if defined(OPEN_MPI) && OPEN_MPI
enum { FOR_OPEN_MPI = true };
#else
enum { FOR_OPEN_MPI = false };
#endif

__attribute__((constructor)) static void real_load(void)
{
	Dl_info info;
	void *library;
	size_t i;

	/* A function we do not define ourselves tells which library is the MPI's. */
	if (!dladdr((void *)PMPI_Get_library_version, &info))
		real_die("no MPI library: ", dlerror());
	library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (!library)
		real_die("no MPI library: ", dlerror());
	if (is_open_mpi(library) != FOR_OPEN_MPI)
		real_die("this build is for another MPI than ", info.dli_fname);
	for (i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		void *function = dlsym(library, functions[i].name);

		if (!function)
			real_die("missing in the MPI library: ", functions[i].name);
		*(void **)functions[i].slot = function;
	}
}
