// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What messages usually take, from the timed runs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report_path.h"

/* A message that was waited for. */
struct flown {
	uint32_t collective;
	bool far;
	uint64_t bytes;
	uint32_t from, to;
	double ns;
	double stolen;	/* that its sender or receiver had no core in the run */
};

enum {
	HELD_LEAST_NS = 20000,	/* without a core for less: that is not seen in a message's time */
	FREE_LEAST = 4,		/* messages of a pair that say what is usual, if they were not held */
};

static bool was_held(const struct flown *flown)
{
	return flown->stolen >= HELD_LEAST_NS;
}

bool coll_report_same_run(const struct report_record *a, const struct report_record *b)
{
	return a->run->group == b->run->group && a->run->number == b->run->number;
}

static int flown_site(const struct flown *a, const struct flown *b)
{
	if (a->collective != b->collective)
		return a->collective < b->collective ? -1 : 1;
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? -1 : 1;
	return a->far - b->far;
}

static int by_pair(const void *left, const void *right)
{
	const struct flown *a = left, *b = right;
	const int site = flown_site(a, b);

	if (site)
		return site;
	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	if (a->to != b->to)
		return a->to < b->to ? -1 : 1;
	if (was_held(a) != was_held(b))
		return was_held(a) ? 1 : -1;
	return a->ns < b->ns ? -1 : a->ns > b->ns;
}

static int by_time(const void *left, const void *right)
{
	const double a = *(const double *)left, b = *(const double *)right;

	return a < b ? -1 : a > b;
}

/* ---- messages ------------------------------------------------------------ */

const struct report_record *coll_report_of_rank(const struct report_record *first, size_t count,
						uint32_t rank)
{
	size_t low = 0, high = count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (first[middle].rank < rank)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && first[low].rank == rank ? &first[low] : NULL;
}

/* To one rank in one run. */
static size_t flown_to(const struct report_record *first, size_t count,
		       const struct report_record *to, uint64_t base, struct flown *flown)
{
	size_t found = 0;
	uint32_t i;

	for (i = 0; i < to->run->exchanges; i++) {
		const struct coll_flight_exchange *with = &to->run->with[i], *other;
		const struct report_record *from = coll_report_of_rank(first, count, with->peer);
		double ns;

		other = from ? report_exchange(from->run, to->rank) : NULL;
		if (!report_waited(with) || !other || !other->sent)
			continue;
		ns = report_began(to, base) + (double)with->arrived * COLL_FLIGHT_TICK -
		     report_began(from, base) - (double)other->sent * COLL_FLIGHT_TICK;
		flown[found++] = (struct flown){
			.collective = to->run->collective,
			.bytes = to->run->bytes,
			.far = from->host != to->host,
			.from = from->rank,
			.to = to->rank,
			.ns = ns > 0 ? ns : 0,
			.stolen = ((double)from->run->stolen + to->run->stolen) * COLL_FLIGHT_TICK,
		};
	}
	return found;
}

static size_t flown_all(const struct report_record *records, size_t count, uint64_t base,
			struct flown *flown)
{
	size_t first, end, i, found = 0;

	for (first = 0; first < count; first = end) {
		end = first + 1;
		while (end < count && coll_report_same_run(&records[first], &records[end]))
			end++;
		for (i = first; i < end; i++)
			found += flown_to(records + first, end - first, &records[i], base,
					  flown + found);
	}
	return found;
}

/* ---- what is usual ------------------------------------------------------- */

/*
 * Of a pair whose ranks nearly always were without a core in the run: what is left of a message's time without that, in
 * the middle, but no less than the shortest. `scratch` has room for all.
 */
static double held_median(const struct flown *flown, size_t count, double *scratch)
{
	double shortest = flown->ns;
	size_t i;

	for (i = 0; i < count; i++) {
		scratch[i] = flown[i].ns > flown[i].stolen ? flown[i].ns - flown[i].stolen : 0;
		if (flown[i].ns < shortest)
			shortest = flown[i].ns;
	}
	qsort(scratch, count, sizeof(*scratch), by_time);
	return scratch[count / 2] > shortest ? scratch[count / 2] : shortest;
}

/* The medians of the pairs of one site: of messages whose ranks had their cores, where there are any. Returns how many. */
static size_t pair_medians(const struct flown *flown, size_t count, double *median)
{
	size_t first, end, found = 0, free;

	for (first = 0; first < count; first = end) {
		end = free = first;
		while (end < count && flown[end].from == flown[first].from &&
		       flown[end].to == flown[first].to)
			free += !was_held(&flown[end++]);
		median[found] = free - first >= FREE_LEAST || free == end ?
					flown[first + (free - first) / 2].ns :
					held_median(&flown[first], end - first, &median[found]);
		found++;
	}
	return found;
}

static void take_usual(struct report_flights *flights, const struct flown *flown, double ns)
{
	struct report_usual *usual = flights->count ? &flights->usual[flights->count - 1] : NULL;

	if (!usual || usual->collective != flown->collective || usual->bytes != flown->bytes) {
		usual = &flights->usual[flights->count++];
		*usual = (struct report_usual){ .collective = flown->collective,
						.bytes = flown->bytes };
	}
	usual->ns[flown->far] = ns;
}

/* Of the site whose usual time was taken last. What a rank without a core did is not the message's. */
static void take_late(struct report_flights *flights, const struct flown *flown, size_t count,
		      double usual_ns)
{
	struct report_usual *usual = &flights->usual[flights->count - 1];
	size_t i;

	usual->messages += count;
	for (i = 0; i < count; i++) {
		const double longer = flown[i].ns - flown[i].stolen - usual_ns;

		if (longer <= (REPORT_LATE_TIMES - 1) * usual_ns || !(usual_ns > 0))
			continue;
		usual->late++;
		usual->late_ns += longer;
	}
}

static void find_usual(struct report_flights *flights, const struct flown *flown, size_t count,
		       double *median)
{
	size_t first, end, pairs;

	for (first = 0; first < count; first = end) {
		end = first + 1;
		while (end < count && !flown_site(&flown[first], &flown[end]))
			end++;
		pairs = pair_medians(flown + first, end - first, median);
		qsort(median, pairs, sizeof(*median), by_time);
		take_usual(flights, &flown[first], median[pairs / 4]);
		take_late(flights, flown + first, end - first, median[pairs / 4]);
	}
}

/* They are in the order of the messages that they are from. */
static int by_call(const void *left, const void *right)
{
	const struct report_usual *a = left, *b = right;

	if (a->collective != b->collective)
		return a->collective < b->collective ? -1 : 1;
	return a->bytes < b->bytes ? -1 : a->bytes > b->bytes;
}

static struct report_usual *usual_of(const struct report_flights *flights,
				     const struct coll_flight_timed *run)
{
	const struct report_usual of = { .collective = run->collective, .bytes = run->bytes };

	return bsearch(&of, flights->usual, flights->count, sizeof(of), by_call);
}

/* A message that is there before it is waited for may be any of those that are not late. */
static void count_unwaited(const struct report_flights *flights, const struct report_record *records,
			   size_t count)
{
	size_t i;
	uint32_t k;

	for (i = 0; i < count; i++) {
		struct report_usual *usual = usual_of(flights, records[i].run);

		for (k = 0; usual && k < records[i].run->exchanges; k++)
			usual->messages += records[i].run->with[k].arrived &&
					   !report_waited(&records[i].run->with[k]);
	}
}

int coll_report_flights_find(struct report_flights *flights, const struct report_record *records,
			     size_t count, uint64_t base)
{
	const size_t most = count * COLL_FLIGHT_EXCHANGES + 1;
	struct flown *flown = calloc(most, sizeof(*flown));
	double *median = calloc(most, sizeof(*median));
	size_t found;

	*flights = (struct report_flights){ .usual = calloc(most, sizeof(*flights->usual)) };
	if (flown && median && flights->usual) {
		found = flown_all(records, count, base, flown);
		qsort(flown, found, sizeof(*flown), by_pair);
		find_usual(flights, flown, found, median);
		count_unwaited(flights, records, count);
	}
	found = flown && median && flights->usual;
	free(flown);
	free(median);
	return found ? 0 : -ENOMEM;
}

double coll_report_usual_ns(const struct report_flights *flights,
			    const struct coll_flight_timed *run, bool far)
{
	const struct report_usual *usual = usual_of(flights, run);

	return usual ? usual->ns[far] : 0;
}
