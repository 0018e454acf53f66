// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Output of collnoise predict. */
#include <errno.h>
#include <stdio.h>

#include "tools/common/palette.h"
#include "predict.h"
#include "node/units.h"
#include "view.h"

const struct predict_remedy predict_remedies[REMEDIES] = {
	[NOTHING] = { "as_is", "as it is" },
	[PINNED] = { "pinned", "pinned" },
	[TOGETHER] = { "coscheduled", "co-scheduled" },
	[REDUNDANT] = { "redundant", "redundancy" },
	[OFFLOADED] = { "offloaded", "offloaded" },
};


void predict_print(const struct predict *p, const struct predict_row *row)
{
	char text[24], collective[24];
	bool beyond = false;
	u32 i, r;

	printf("%s of %llu bytes after %s of computing; %.3g %% of the noise can be pinned "
	       "away\n\n",
	       coll_collective_names[p->collective], (unsigned long long)p->bytes,
	       node_time_text(p->grain, text), 100 * p->moved);
	printf("%10s %11s %11s %11s %8s", "ranks", "quiet", "mean", "p99", "slower");
	for (r = PINNED; r < REMEDIES; r++)
		printf(" %13s", predict_remedies[r].about);
	printf("  T\n");
	for (i = 0; i < p->counts; i++) {
		printf("%9u%s", row[i].ranks, row[i].beyond ? "*" : " ");
		printf(" %11s", node_time_text(row[i].base * 1e9, text));
		printf(" %11s", node_time_text(row[i].of[NOTHING].mean * 1e9, text));
		printf(" %11s", node_time_text(row[i].of[NOTHING].p99 * 1e9, collective));
		if (row[i].base > 0)
			printf(" %8.4g", row[i].of[NOTHING].mean / row[i].base);
		else
			printf(" %8s", "-");
		for (r = PINNED; r < REMEDIES; r++)
			printf(" %5.1f %% saved",
			       100 * (1 - row[i].of[r].mean / row[i].of[NOTHING].mean));
		printf("  %u", row[i].with.exchanges);
		if (row[i].with.relays)
			printf("+%u", row[i].with.relays);
		printf("\n");
		beyond |= row[i].beyond;
	}
	if (beyond)
		printf("\n* more ranks than the captures have windows of that length: rarer events "
		       "are missing, so this is a lower bound.\n");
}

void predict_print_json(const struct predict *p, const struct predict_row *row)
{
	json_t *rows = json_array();
	u32 i, r;

	for (i = 0; i < p->counts; i++) {
		json_t *one = json_pack(
			"{sI ss ss sf sb si si}", "ranks", (json_int_t)row[i].ranks, "algo",
			row[i].algo, "by", row[i].simulated ? "schedules" : "order statistics",
			"quiet_s", row[i].base, "beyond_capture", row[i].beyond, "T",
			(int)row[i].with.exchanges, "relays", (int)row[i].with.relays);

		for (r = 0; r < REMEDIES; r++)
			json_object_set_new(one, predict_remedies[r].key,
				json_pack("{sf sf sf}", "mean_s", row[i].of[r].mean, "p99_s",
					  row[i].of[r].p99, "saved",
					  1 - row[i].of[r].mean / row[i].of[NOTHING].mean));
		if (row[i].base > 0)
			json_object_set_new(one, "slowdown",
					    json_real(row[i].of[NOTHING].mean / row[i].base));
		json_array_append_new(rows, one);
	}
	noise_json_print(json_pack("{ss sI sf sf so}", "collective",
				   coll_collective_names[p->collective], "size",
				   (json_int_t)p->bytes, "grain_s", p->grain * 1e-9, "pinned_share",
				   p->moved, "predictions", rows), stdout);
}

int predict_draw(const struct predict *p, const struct predict_row *row)
{
	FILE *to;
	u32 i, r;

	fflush(stdout);
	to = popen("gnuplot -", "we");
	if (!to)
		return -errno;
	fprintf(to, "%sset encoding utf8\nset terminal svg size 800,500 font 'sans,12' background "
		"paper\nset output '%s'\nset logscale xy\nset xlabel 'ranks'\n"
		"set ylabel 'time of a step, us'\nset key left top\nset grid lc rgb rule\n"
		"set format x '10^{%%L}'\nset title '%s of %llu bytes after %g us of computing'\n"
		"$rows << EOD\n", palette_gp, p->plot, coll_collective_names[p->collective],
		(unsigned long long)p->bytes, p->grain / 1e3);
	for (i = 0; i < p->counts; i++) {
		fprintf(to, "%u %g %g", row[i].ranks, row[i].base * 1e6,
			row[i].of[NOTHING].p99 * 1e6);
		for (r = 0; r < REMEDIES; r++)
			fprintf(to, " %g", row[i].of[r].mean * 1e6);
		fprintf(to, "\n");
	}
	fprintf(to, "EOD\nplot $rows using 1:2 with lines dt 2 lc 0 title 'without noise', "
		    "'' using 1:3 with lines dt 3 lc 1 title 'as it is, p99'");
	for (r = 0; r < REMEDIES; r++)
		fprintf(to, ", '' using 1:%u with linespoints lc %u pt 7 ps 0.5 title '%s'", r + 4,
			r + 1, predict_remedies[r].about);
	fprintf(to, "\n");
	if (!pclose(to))
		return 0;
	fprintf(stderr, "collnoise predict: gnuplot did not draw %s; is it installed, and the "
		"file's folder writable?\n", p->plot);
	return -EIO;
}
