// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <math.h>
#include <string.h>

#include "tools/common/arguments.h"
#include "rates.h"

/* 1 us, 4 us, ... 4 ms, and longer. */
static u32 kind_of(u64 duration)
{
	u32 kind = 0;

	for (duration /= 1000; duration && kind < COLL_NOISES_MAX - 1; duration /= 4)
		kind++;
	return kind;
}

void noise_rates(const struct node_capture *capture, struct coll_noise_rate rate[COLL_NOISES_MAX])
{
	double count[COLL_NOISES_MAX] = { 0 }, total[COLL_NOISES_MAX] = { 0 }, watched = 0;
	u32 kinds = 0, k;
	u64 i;

	for (i = 0; i < capture->head.events; i++) {
		k = kind_of(capture->event[i].duration);
		count[k]++;
		total[k] += capture->event[i].duration;
	}
	for (i = 0; i < capture->head.cpus; i++)
		watched += capture->cpu[i].watched;
	memset(rate, 0, COLL_NOISES_MAX * sizeof(*rate));
	for (k = 0; k < COLL_NOISES_MAX; k++)
		if (count[k] > 0 && watched > 0)
			rate[kinds++] = (struct coll_noise_rate){ count[k] / watched * 1e9,
								  total[k] / count[k] * 1e-9 };
}

void noise_rates_print(const struct coll_noise_rate rate[COLL_NOISES_MAX], FILE *to)
{
	u32 k;

	for (k = 0; k < COLL_NOISES_MAX && rate[k].rate > 0; k++)
		fprintf(to, "%s%.6gx%.4gus", k ? "+" : "", rate[k].rate, rate[k].duration * 1e6);
	if (!k)
		fputs("none", to);
}

int noise_rates_write(const char *command, const struct node_capture *capture, const char *path)
{
	struct coll_noise_rate rate[COLL_NOISES_MAX];
	FILE *to = fopen(path, "we");
	int status = to ? 0 : -errno;

	if (to) {
		noise_rates(capture, rate);
		fprintf(to, "# noise of %s, by collnoise %s\nnoise = ", capture->head.host,
			command);
		noise_rates_print(rate, to);
		fputc('\n', to);
		if (fclose(to))
			status = -errno;
	}
	if (status)
		fprintf(stderr, "%s %s: cannot write %s: %s\n", argument_program, command, path,
			strerror(-status));
	return status;
}
