// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The picture of the page: a row a node, or a rank if there is one node alone. The upper bar of a
 * row is the time of its ranks in collectives, by what they waited for; the lower one is what they
 * made all ranks lose, so who causes a wait stands out. In the page itself, as SVG; the colours are
 * variables of its style, so it is light or dark as the page is.
 */
#include <string.h>

#include "html.h"
#include "report.h"

/* In units of the picture. */
enum {
	ROWS = 32, WIDTH = 1000, LEFT = 150, RIGHT = 850, TOP = 26, ROW = 50, TALL = 18, LOW = 7,
	SPENT = 6, CAUSED = 28, WORDS = 38,	/* down from the top of a row */
	TICKS = 5, LABEL = 20, BY = 60,
};

const struct node_report_part node_report_parts[COLL_FLIGHT_LOSS_KINDS] = {
	{ "waiting for late ranks", ".late_rank_seconds", "series2" },
	{ "ranks without a core", ".no_core_seconds", "series5" },
	{ "late messages", ".late_message_seconds", "series4" },
};

static const struct node_report_part rest[] = {
	{ "not known", NULL, "series3" },
	{ "in a call that has not ended", NULL, "series6" },
	{ "messages and arithmetic", NULL, "series1" },
};

struct report_row {
	char place[32];			/* in the JSON: what has inside_seconds */
	char label[64], detail[64];
	const struct coll_flight_spent *spent;
	double lost[COLL_FLIGHT_LOSS_KINDS], cost;
	char by[COLL_FLIGHT_ADVICE];	/* what cost it, by name */
};

struct report_picture {
	FILE *to;
	double seconds;			/* of the job */
	double most;			/* of them, the right end of the axis */
	double y;			/* of the row */
	double at;			/* seconds that its bar has so far */
};

/* Of several takers the first one's name. */
static const char *cause_name(const struct coll_flight_loss *loss, char text[COLL_FLIGHT_WORDS])
{
	if (coll_flight_is_by_takers(loss))
		return coll_flight_taker_name(&loss->seen->observed.taker[0], text);
	return coll_flight_because_names[loss->because];
}

/* ---- rows --------------------------------------------------------------------------- */

static void row_of_node(const struct coll_flight_report *report, uint32_t index,
			struct report_row *row)
{
	const struct coll_flight_node *node = &report->node[index];

	*row = (struct report_row){ .spent = &node->spent, .cost = node->cost };
	snprintf(row->place, sizeof(row->place), ".node[%u].its_ranks", index);
	snprintf(row->label, sizeof(row->label), "%s", node->host);
	snprintf(row->detail, sizeof(row->detail), "%u rank%s", node->ranks,
		 node->ranks == 1 ? "" : "s");
	memcpy(row->lost, node->lost, sizeof(row->lost));
	coll_flight_names_text(node, 2, row->by, sizeof(row->by));
}

static void row_of_rank(const struct coll_flight_report *report, const struct coll_flight_job *job,
			uint32_t index, struct report_row *row)
{
	const uint32_t rank = job->seen[index]->page.rank;
	char name[COLL_FLIGHT_WORDS];
	double most = 0;
	uint32_t i;

	*row = (struct report_row){ .spent = &report->rank[index] };
	snprintf(row->place, sizeof(row->place), ".rank[%u].in_calls", index);
	snprintf(row->label, sizeof(row->label), "rank %u", rank);
	for (i = 0; i < report->losses; i++) {
		const struct coll_flight_loss *loss = &report->loss[i];

		if (loss->rank != rank)
			continue;
		row->lost[loss->kind] += loss->cost;
		row->cost += loss->cost;
		if (loss->cost > most && loss->because != COLL_FLIGHT_BECAUSE_NOT_KNOWN)
			snprintf(row->by, sizeof(row->by), "%s", cause_name(loss, name));
		most = loss->cost > most ? loss->cost : most;
	}
}

static uint32_t count_rows(const struct coll_flight_report *report,
			   const struct coll_flight_job *job)
{
	return report->nodes > 1 ? report->nodes : job->count;
}

static void take_row(const struct coll_flight_report *report, const struct coll_flight_job *job,
		     uint32_t index, struct report_row *row)
{
	if (report->nodes > 1)
		row_of_node(report, index, row);
	else
		row_of_rank(report, job, index, row);
}

/* ---- the axis -------------------------------------------------------------------------- */

/* Per cent of the job: a round number that no bar exceeds, and a fifth of which is one as well. */
static double axis_end(double share)
{
	static const double ends[] = { 1, 2, 5, 10, 15, 20, 30, 40, 50, 75 };
	size_t i;

	for (i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		if (100 * share <= ends[i])
			return ends[i];
	return 100;
}

static double x_of(const struct report_picture *picture, double seconds)
{
	const double part = picture->most > 0 ? seconds / picture->most : 0;

	return LEFT + (RIGHT - LEFT) * (part < 1 ? part : 1);
}

static void put_axis(const struct report_picture *picture, uint32_t rows)
{
	const double bottom = TOP + ROW * (double)rows;
	char time[32];
	uint32_t i;

	for (i = 0; i <= TICKS; i++) {
		const double seconds = picture->most * i / TICKS, x = x_of(picture, seconds);

		fprintf(picture->to, "<path class=\"grid\" d=\"M%.1f %d V%.1f\"/>"
			"<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.3g%s</text>", x, TOP - 6,
			bottom, x, TOP - 12,
			picture->seconds > 0 ? 100 * seconds / picture->seconds : 0,
			i == TICKS ? "&#160;% of the job" : "&#160;%");
		fprintf(picture->to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>", x,
			bottom + 14, i ? node_html_time_text(1e9 * seconds, time) : "0");
	}
	fprintf(picture->to, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">in calls</text>\n", WIDTH,
		TOP - 12);
}

/* ---- bars -------------------------------------------------------------------------------- */

static void put_part(struct report_picture *picture, const char *class, int y, int height, double seconds,
		     const struct node_report_part *part, const char *of)
{
	const double from = x_of(picture, picture->at), end = x_of(picture, picture->at + seconds);
	char share[32], time[32];

	if (!(seconds > 0))
		return;
	picture->at += seconds;
	fprintf(picture->to, "<rect class=\"%s\" x=\"%.2f\" y=\"%.1f\" width=\"%.3f\" height=\"%d\" "
		"style=\"fill:var(--%s)\"><title>%s%s: %s, %s</title></rect>", class, from,
		picture->y + y, end - from, height, part->colour, of, part->name,
		node_html_time_text(1e9 * seconds, time),
		node_html_share_text(picture->seconds > 0 ? seconds / picture->seconds : 0, share));
}

static void put_spent(struct report_picture *picture, const struct coll_flight_spent *spent)
{
	const double parts[] = { spent->unknown, spent->waiting };
	uint32_t i;

	picture->at = 0;
	for (i = 0; i < COLL_FLIGHT_LOSS_KINDS; i++)
		put_part(picture, "spent", SPENT, TALL, spent->waited[i], &node_report_parts[i], "");
	for (i = 0; i < 2; i++)
		put_part(picture, "spent", SPENT, TALL, parts[i], &rest[i], "");
	put_part(picture, "spent", SPENT, TALL, spent->inside - picture->at, &rest[2], "");
}

static void put_caused(struct report_picture *picture, const struct report_row *row)
{
	uint32_t i;

	picture->at = 0;
	for (i = 0; i < COLL_FLIGHT_LOSS_KINDS; i++)
		put_part(picture, "caused", CAUSED, LOW, row->lost[i], &node_report_parts[i],
			 "it made all ranks lose: ");
}

/* As far as there is room for it; no part of a character of several bytes is left. */
static void put_short(const char *text, size_t most, FILE *to)
{
	char begin[BY + 1];
	size_t length = strlen(text), i, kept = 0;

	if (length > most) {
		for (length = most - 1; length && ((unsigned char)text[length] & 0xc0) == 0x80; length--)
			;
	}
	for (i = 0; i < length && kept < BY; i++)
		if (text[i] != '`')
			begin[kept++] = text[i];
	begin[kept] = 0;
	node_html_text(begin, to);
	fprintf(to, "%s", text[length] ? "&#8230;" : "");
}

/* Behind the bar; of a long one over its end, since there are numbers behind the axis. */
static double x_beside(const struct report_picture *picture, const struct report_row *row)
{
	const size_t length = strlen(row->by);
	const double x = x_of(picture, row->cost) + 6,
		     most = RIGHT - 6.5 * (length < BY ? length : BY);

	return x < most ? x : most;
}

static void put_words(const struct report_picture *picture, const struct report_row *row)
{
	const double y = picture->y + SPENT, lower = picture->y + WORDS;
	char inside[32], cost[32];

	fprintf(picture->to, "<text class=\"number\" x=\"0\" y=\"%.1f\">", y + 13);
	put_short(row->label, LABEL, picture->to);
	fprintf(picture->to, "</text><text x=\"0\" y=\"%.1f\">%s</text>", lower, row->detail);
	fprintf(picture->to, "<text class=\"number\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>",
		WIDTH, y + 13, node_html_time_text(1e9 * row->spent->inside, inside));
	if (!(row->cost > 0))
		return;
	fprintf(picture->to, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">costs all %s</text>", WIDTH,
		lower, node_html_time_text(1e9 * row->cost, cost));
	if (!*row->by)
		return;
	fprintf(picture->to, "<text class=\"above\" x=\"%.1f\" y=\"%.1f\">",
		x_beside(picture, row), lower);
	put_short(row->by, BY, picture->to);
	fprintf(picture->to, "</text>");
}

static void put_row(struct report_picture *picture, const struct report_row *row)
{
	fprintf(picture->to, "<g class=\"row\" data-of=\"%s\">", row->place);
	put_spent(picture, row->spent);
	put_caused(picture, row);
	put_words(picture, row);
	fprintf(picture->to, "</g>\n");
	picture->y += ROW;
}

/* ---- the picture ---------------------------------------------------------------------------- */

static void put_key(const struct node_report_part *part, FILE *to)
{
	fprintf(to, "<span><i style=\"background:var(--%s)\"></i>%s</span>", part->colour, part->name);
}

static void put_keys(FILE *to)
{
	uint32_t i;

	fprintf(to, "<div class=\"keys\" style=\"margin-left:0\">");
	for (i = 0; i < COLL_FLIGHT_LOSS_KINDS; i++)
		put_key(&node_report_parts[i], to);
	for (i = 0; i < sizeof(rest) / sizeof(*rest); i++)
		put_key(&rest[i], to);
	fprintf(to, "</div>");
}

static double most_of_rows(const struct coll_flight_report *report,
			   const struct coll_flight_job *job, uint32_t rows)
{
	struct report_row row;
	double most = 0;
	uint32_t i;

	for (i = 0; i < rows; i++) {
		take_row(report, job, i, &row);
		most = row.spent->inside > most ? row.spent->inside : most;
		most = row.cost > most ? row.cost : most;
	}
	return most;
}

void node_report_picture(const struct coll_flight_report *report, const struct coll_flight_job *job,
			 FILE *to)
{
	const uint32_t all = count_rows(report, job), rows = all < ROWS ? all : ROWS;
	const char *what = report->nodes > 1 ? "node" : "rank";
	struct report_picture picture = { .to = to, .seconds = report->seconds, .y = TOP };
	struct report_row row;
	double end;
	uint32_t i;

	end = report->seconds > 0 ? axis_end(most_of_rows(report, job, rows) / report->seconds) : 100;
	picture.most = report->seconds * end / 100;
	fprintf(to, "<figure><svg class=\"chart\" viewBox=\"0 0 %d %u\" role=\"img\" data-end=\"%g\" "
		"data-width=\"%d\" aria-label=\"Time in collectives by %s and cause\">\n", WIDTH,
		TOP + ROW * rows + 20, end, RIGHT - LEFT, what);
	put_axis(&picture, rows);
	for (i = 0; i < rows; i++) {
		take_row(report, job, i, &row);
		put_row(&picture, &row);
	}
	fprintf(to, "</svg>\n");
	put_keys(to);
	fprintf(to, "<figcaption>A row a %s. Above, its time in collectives, by what was waited for "
		"there; below, what it made all ranks lose, in the mean: what waits little and makes others "
		"lose much is the cause", what);
	if (all > rows)
		fprintf(to, ". The %s %u of %u; the JSON has all",
			report->nodes > 1 ? "costliest" : "first", rows, all);
	fprintf(to, ".</figcaption></figure>\n");
}
