// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * What the memory cgroups have left (libcoll/base/memory_limit.h), by files in a folder that look like
 * the kernel's of both versions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "libcoll/base/memory_limit.h"

static char mount[] = "/tmp/memory_limit_test.XXXXXX", cgroups[64];

static void put(const char *path, const char *text)
{
	char whole[256], *slash;
	FILE *file;

	snprintf(whole, sizeof(whole), "%s/%s", mount, path);
	for (slash = whole + strlen(mount) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = 0;
		mkdir(whole, 0700);
	}
	file = fopen(whole, "we");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int begin(void **state)
{
	(void)state;
	strcpy(mount + strlen(mount) - 6, "XXXXXX");
	assert_non_null(mkdtemp(mount));
	snprintf(cgroups, sizeof(cgroups), "%s/cgroup", mount);
	return 0;
}

static int end(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", mount);
	return system(command);
}

static uint64_t left(void)
{
	return coll_memory_limit_left_by(cgroups, mount);
}

static void the_least_of_all_above_it(void **state)
{
	(void)state;
	put("cgroup", "0::/job/rank\n");
	put("job/rank/memory.max", "max\n");
	put("job/rank/memory.current", "700\n");
	assert_int_equal(left(), UINT64_MAX);
	put("job/memory.max", "5000\n");
	put("job/memory.current", "4000\n");
	assert_int_equal(left(), 1000);
	put("job/rank/memory.max", "900\n");
	assert_int_equal(left(), 200);
	put("job/rank/memory.current", "901\n");
	assert_int_equal(left(), 0);
}

/* It goes before anything is killed. Shared memory and what is dirty for good is not among it. */
static void the_page_cache_is_left(void **state)
{
	(void)state;
	put("cgroup", "0::/job\n");
	put("job/memory.max", "5000\n");
	put("job/memory.current", "5000\n");
	put("job/memory.stat", "anon 1000\nfile 3500\nshmem 500\ninactive_anon 1500\ninactive_file 1000\n"
			       "active_file 2000\n");
	assert_int_equal(left(), 3000);
}

static void version_1(void **state)
{
	(void)state;
	put("cgroup", "9:name=systemd:/\n4:memory:/job\n3:cpuset:/\n0::/\n");
	put("memory/memory.limit_in_bytes", "9223372036854771712\n");
	put("memory/memory.usage_in_bytes", "1000000\n");
	assert_int_equal(left(), UINT64_MAX);
	put("memory/job/memory.limit_in_bytes", "5000\n");
	put("memory/job/memory.usage_in_bytes", "4000\n");
	put("memory/job/memory.stat", "inactive_file 7\ntotal_inactive_file 100\ntotal_active_file 20\n");
	assert_int_equal(left(), 1120);
}

/* The path is the machine's, the mount is the container's own. */
static void in_a_container(void **state)
{
	(void)state;
	put("cgroup", "4:memory:/docker/0123\n0::/\n");
	put("memory/memory.limit_in_bytes", "5000\n");
	put("memory/memory.usage_in_bytes", "4000\n");
	assert_int_equal(left(), 1000);
	put("cgroup", "0::/\n");
	put("memory.max", "600\n");
	put("memory.current", "500\n");
	assert_int_equal(left(), 100);
}

static void what_cannot_be_read_is_no_limit(void **state)
{
	char path[3000];

	(void)state;
	assert_int_equal(left(), UINT64_MAX);
	put("cgroup", "\n:\n0\n0:\n0::\n0::x\n4:memory:x\n");
	assert_int_equal(left(), UINT64_MAX);
	memset(path, 'x', sizeof(path));
	memcpy(path, "0::/", 4);
	path[sizeof(path) - 1] = 0;
	put("cgroup", path);
	put("memory.current", "500\n");
	assert_int_equal(left(), UINT64_MAX);
	put("memory.max", "much\n");
	assert_int_equal(left(), UINT64_MAX);
	put("memory.max", "");
	assert_int_equal(left(), UINT64_MAX);
}

#define limit_test(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		limit_test(the_least_of_all_above_it),
		limit_test(the_page_cache_is_left),
		limit_test(version_1),
		limit_test(in_a_container),
		limit_test(what_cannot_be_read_is_no_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
