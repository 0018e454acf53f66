// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * coll wan: runs as a rank of a job. The library measures links inside a cluster and between
 * clusters, one and many at once. The result is printed as options of the library: the choice of
 * algorithms, n and streams uses them.
 */
#include <stdio.h>
#include <stdlib.h>

#include "libcoll/coll.h"
#include "tools/common/arguments.h"
#include "tools/common/command.h"
#include "tools/common/options.h"

struct wan_settings {
	bool json;
};

static const struct option_entry wan_entries[] = {
	{ "json", 0, NULL, "print JSON", OPTION_FORMAT(struct wan_settings, json) },
	{ NULL },
};

static const char *const usage[] = {
	"usage: coll run -n RANKS -- coll wan [OPTION ...]",
	"",
	"Runs as the ranks of a job (coll run, coll lab, mpirun, srun). Measures what a link",
	"inside a cluster carries, and what 1, 2, 4, ... links between the first two clusters",
	"carry together. Prints the library's options alpha, beta, wan_alpha, wan_beta, wan_loss",
	"and wan_streams as lines for the file $COLL_CONFIG. (With COLL_WAN=auto a job measures",
	"them itself when it starts.)",
	"",
	"COLL_CLUSTERS names the cluster of each rank, see coll(7); without it, the clusters are",
	"measured.",
	NULL,
};

static const char *const closing[] = {
	"Exit code: 0 ok, 1 a call failed or there is one cluster only, 2 wrong usage.",
	NULL,
};

const struct option_table cmd_wan_options = {
	.command = "wan",
	.usage = usage,
	.closing = closing,
	.list = { wan_entries },
};

static void print_json(const struct coll_wan *wan)
{
	uint32_t i;

	printf("{\"alpha\": %g, \"beta\": %g, \"wan_alpha\": %g, \"wan_beta\": %g, "
	       "\"wan_loss\": %g, \"wan_streams\": %u, \"links\": [", wan->alpha, wan->beta,
	       wan->wan_alpha, wan->wan_beta, wan->wan_loss, wan->streams);
	for (i = 0; i < wan->points; i++)
		printf("%s{\"links\": %llu, \"rate\": %g}", i ? ", " : "",
		       (unsigned long long)wan->point[i].links, wan->point[i].rate);
	printf("]}\n");
}

/* Whether this host restarts idle connections slowly, which is the default. */
static bool idle_links_cool(void)
{
	FILE *file = fopen("/proc/sys/net/ipv4/tcp_slow_start_after_idle", "re");
	const bool cool = file && fgetc(file) == '1';

	if (file)
		fclose(file);
	return cool;
}

static void print_options(const struct coll_wan *wan)
{
	uint32_t i;

	for (i = 0; i < wan->points; i++)
		printf("# %3llu links across: %10.3f MB/s\n",
		       (unsigned long long)wan->point[i].links, wan->point[i].rate / 1e6);
	if (wan->alpha > 0)
		printf("alpha = %.1fus\n", wan->alpha * 1e6);
	printf("beta = %.4fns\nwan_alpha = %.3fms\n", wan->beta * 1e9, wan->wan_alpha * 1e3);
	if (wan->wan_beta > 0)
		printf("wan_beta = %.4fns\nwan_loss = %.3f\n", wan->wan_beta * 1e9, wan->wan_loss);
	else
		printf("# wan_beta is an upper limit: all links together did not fill the WAN\n");
	printf("wan_streams = %u\n", wan->streams);
	if (idle_links_cool())
		printf("# sysctl net.ipv4.tcp_slow_start_after_idle=0 on all nodes: links that "
		       "were\n"
		       "# idle are fast at once\n");
}

static int wan_print(struct coll_context *context, bool json)
{
	struct coll_wan wan = { .size = sizeof(wan) };

	if (coll_wan(context, &wan)) {
		if (!coll_rank(coll_world(context)))
			fprintf(stderr, "coll wan: all ranks are in one cluster; valid: a job of two clusters, "
				"by coll lab, or coll run --hosts with COLL_CLUSTERS=A+B\n");
		return COMMAND_ERROR;
	}
	if (!coll_rank(coll_world(context)))
		(json ? print_json : print_options)(&wan);
	return COMMAND_OK;
}

int cmd_wan(int argc, char **argv)
{
	struct wan_settings settings = { .json = false };
	struct coll_context *context;
	int status;

	if (!options_read(&cmd_wan_options, argc, argv, &settings))
		return COMMAND_USAGE;
	if (coll_open(getenv("COLL_CLUSTERS") ? "wan=auto" : "wan=auto clusters=auto", &context)) {
		fprintf(stderr, "coll wan: %s\n", coll_context_error(NULL));
		return COMMAND_ERROR;
	}
	status = wan_print(context, settings.json);
	coll_close(context);
	return status;
}
