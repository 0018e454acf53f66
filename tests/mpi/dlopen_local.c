// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * dlopen_local PLUGIN: a program that is not linked with MPI loads a library that is, with
 * RTLD_LOCAL, as Python does.
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *plugin = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW | RTLD_LOCAL);
	int (*run)(void);

	if (!plugin) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	run = (int (*)(void))dlsym(plugin, "plugin_run");
	return run ? run() : 1;
}
