// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Noise out of samples: rates and lengths that are known come out, an application's imbalance is
 * none, nothing comes out of nothing, and what has ended ends.
 *
 * Length: one property of a sum of samples a test, over the same few samples.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "libcoll/topology/late_links.h"
#include "libcoll/topology/lateness.h"

enum { BYTES = 8, EXCHANGES = 64, RUN_MOST = 1 << 20 };

static const double alpha = 20e-6;

static struct coll_machine machine;
static struct coll_lateness late;
static struct coll_sample sample[SAMPLE_CELLS];
static uint32_t first, calls;
static bool accounts, own_cores;	/* of all ranks; of none a core that is shared */
static uint32_t told;			/* ranks of 8 whose colld tells, of a second each: */
static double told_stops, told_stopped;	/* ... so many, seconds each */
static uint64_t state;

static double random_part(void)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return ((state >> 33) + 0.5) / (1ull << 31);
}

static double random_exponential(double mean)
{
	return -mean * log(random_part());
}

static void begin(uint64_t seed)
{
	state = seed;
	first = calls = 0;
	accounts = own_cores = true;
	told = 0;
	memset(&late, 0, sizeof(late));
	machine = (struct coll_machine){ .alpha = alpha, .beta = 1e-9, .crowding = 0.5 };
}

/* What disturbs a job. */
struct stream {
	double chance, length;		/* of a message to be late; mean, exponential */
	double once;			/* the first message of a survey is late by so much */
	double ahead;			/* seconds that a rank may come before the other */
	double stops, stopped;		/* events a second, seconds each: a rank has no core */
	double away;			/* of each call: a rank does not look what has arrived */
};

static double delay(const struct stream *stream)
{
	return random_part() < stream->chance ? random_exponential(stream->length) : 0;
}

static uint32_t in_ns(double seconds)
{
	return seconds > 0 ? lround(seconds * 1e9) : 0;
}

/* Both send when they come, the second `skew` later; each has its message when both are there. */
static struct coll_sample exchange(const struct stream *stream, uint32_t run)
{
	const double skew = stream->ahead * random_part();
	const double usual = (alpha + BYTES * 1e-9) * (0.9 + 0.2 * random_part());
	const double there = skew + usual + delay(stream), back = fmax(skew, usual + delay(stream));
	struct coll_sample one = { .class = COLL_CLASS_CLUSTER, .run = run, .bytes = BYTES,
				   .rank = { run % 8, 8 + run % 7 } };
	double waited[2] = { there, back - skew };
	int i;

	for (i = 0; i < 2; i++) {
		if (random_part() < -expm1(-stream->stops * waited[i])) {
			one.held[i] = in_ns(stream->stopped);
			waited[i] += stream->stopped;
		}
		one.away[i] = in_ns(stream->away);
		waited[i] += stream->away;
		one.waited[i] = in_ns(waited[i]);
	}
	/* From send to arrival; of the second rank it is what it waited, of the first as well. */
	one.ns = in_ns((waited[0] + waited[1]) / 2);
	return one;
}

/* A survey, `seconds` after the one before. Returns whether the noise that counts has changed. */
static bool survey(const struct stream *stream, double seconds)
{
	struct coll_samples_found found = {
		.sample = sample, .samples = EXCHANGES, .call = calls += 1000, .seconds = seconds,
		.from = first, .until = first + EXCHANGES,
		.looks = true, .held = accounts, .own_cores = own_cores, .told = told, .ranks = told ? 8 : 0,
		.stolen = { told * 1e9, told * told_stops * told_stopped * 1e9, told * told_stops },
	};
	uint32_t i;

	for (i = 0; i < EXCHANGES; i++)
		sample[i] = exchange(stream, first + i);
	sample[0].ns += in_ns(stream->once / 2);
	sample[0].waited[0] += in_ns(stream->once);
	first += EXCHANGES;
	return coll_lateness(&machine, &late, &found);
}

static void surveys(const struct stream *stream, double seconds, int count)
{
	while (count--)
		survey(stream, seconds);
}

static void assert_within(double value, double wanted, double factor)
{
	if (!(value <= wanted * factor && value >= wanted / factor))
		fail_msg("%g is not within a factor of %g of %g", value, factor, wanted);
}

/* ---- links --------------------------------------------------------------------- */

/*
 * Of a message in 200 to two in five, 50 to 2000 latencies long. Lengths have no memory, so
 * of delays above the floor the mean is the floor more.
 */
static void delays_of_links_come_out(void **unused)
{
	static const double chances[] = { 0.005, 0.02, 0.1, 0.2, 0.4 };
	static const double lengths[] = { 50, 200, 2000 };
	size_t c, l;

	(void)unused;
	for (c = 0; c < sizeof(chances) / sizeof(*chances); c++)
		for (l = 0; l < sizeof(lengths) / sizeof(*lengths); l++) {
			const struct stream stream = { .chance = chances[c], .length = lengths[l] * alpha };
			const double rate = -log1p(-chances[c]) / (alpha + stream.length);

			begin(17 * c + l);
			surveys(&stream, 0.05, 60);
			assert_within(machine.link_noise.rate, rate, 2);
			assert_within(machine.link_noise.duration, stream.length, 2);
			assert_true(coll_noise_is_found(&machine, &late));
			assert_true(machine.noise[0].rate <= 0);
		}
}

static void nothing_comes_of_nothing(void **unused)
{
	static const struct stream quiet, imbalance = { .ahead = 500e-6 };
	int i;

	(void)unused;
	begin(3);
	for (i = 0; i < 500; i++)
		assert_false(survey(&quiet, 0.05));
	for (i = 0; i < 500; i++)
		assert_false(survey(&imbalance, 0.05));
	assert_true(machine.link_noise.rate <= 0 && machine.noise[0].rate <= 0);
}

/* A rank that is late hides delays of what it would have waited for: fewer are seen, not more. */
static void imbalance_hides_delays_and_makes_none(void **unused)
{
	const struct stream stream = { .chance = 0.05, .length = 2e-3, .ahead = 200e-6 };
	const double rate = -log1p(-stream.chance) / (alpha + stream.length);

	(void)unused;
	begin(4);
	surveys(&stream, 0.05, 60);
	assert_within(machine.link_noise.rate, rate, 2.5);
	assert_within(machine.link_noise.duration, stream.length, 2);
}

/* The program was elsewhere while the message came. */
static void who_does_not_look_finds_no_noise(void **unused)
{
	static const struct stream stream = { .away = 3e-3 };
	int i;

	(void)unused;
	begin(5);
	for (i = 0; i < 200; i++)
		assert_false(survey(&stream, 0.05));
}

/* Costs that are wrong by ten, either way, as an option may give them. */
static void wrong_costs_do_no_harm(void **unused)
{
	static const struct stream quiet, noisy = { .chance = 0.1, .length = 2e-3 };
	static const double wrong[] = { 0.1, 10 };
	int w, i;

	(void)unused;
	for (w = 0; w < 2; w++) {
		begin(6);
		machine.alpha = wrong[w] * alpha;
		for (i = 0; i < 100; i++)
			assert_false(survey(&quiet, 0.05));
		surveys(&noisy, 0.05, 60);
		assert_within(machine.link_noise.duration, noisy.length, 2);
	}
}

/* ---- ranks ---------------------------------------------------------------------- */

static void stops_of_ranks_are_no_delays_of_links(void **unused)
{
	const struct stream stream = { .stops = 500, .stopped = 1e-3 };

	(void)unused;
	begin(7);
	surveys(&stream, 0.05, 100);
	assert_within(machine.noise[0].rate, stream.stops, 2);
	assert_within(machine.noise[0].duration, stream.stopped, 1.1);
	assert_true(machine.link_noise.rate <= 0);
}

/* Where ranks share cores they stop each other. */
static void ranks_that_share_cores_are_not_noise(void **unused)
{
	const struct stream stream = { .stops = 500, .stopped = 1e-3 };

	(void)unused;
	begin(7);
	own_cores = false;
	surveys(&stream, 0.05, 100);
	assert_true(machine.noise[0].rate <= 0 && machine.link_noise.rate <= 0);
}

static const struct coll_late_rank *entry_of(uint32_t rank)
{
	int i;

	for (i = 0; i < COLL_LATE_RANKS; i++)
		if (late.rank_of[i].rank == rank && late.rank_of[i].late + late.rank_of[i].stops > 0)
			return &late.rank_of[i];
	return NULL;
}

/* Two of fifteen ranks: one comes late for its calls, the other has no core at times. */
static void late_ranks_are_named(void **unused)
{
	static const struct stream quiet;
	struct coll_samples_found found = { .sample = sample, .samples = EXCHANGES, .seconds = 0.05,
					    .until = RUN_MOST, .looks = true, .held = true,
					    .own_cores = true };
	int round, i, j;

	(void)unused;
	begin(12);
	for (round = 0; round < 50; round++) {
		for (i = 0; i < EXCHANGES; i++) {
			sample[i] = exchange(&quiet, i);
			for (j = 0; j < 2; j++) {
				if (sample[i].rank[j] == 3) {
					sample[i].waited[j] = 0;
					sample[i].waited[!j] += 700000;
					sample[i].ns += 350000;
				}
				if (sample[i].rank[j] == 9)
					sample[i].held[j] = 400000;
			}
		}
		coll_lateness(&machine, &late, &found);
	}
	assert_non_null(entry_of(3));
	assert_non_null(entry_of(9));
	assert_within(entry_of(3)->behind / entry_of(3)->late, 700e-6, 1.1);
	assert_within(entry_of(9)->stopped / entry_of(9)->stops, 400e-6, 1.1);
	assert_true(entry_of(3)->stops <= 0 && entry_of(9)->late <= 0);
	assert_true(machine.link_noise.rate <= 0);
	found.samples = 0;
	for (round = 0; round < 400; round++)
		coll_lateness(&machine, &late, &found);
	assert_true(entry_of(3)->late < 1 && entry_of(9)->stops < 1);
}

/* ---- leaves --------------------------------------------------------------------- */

/*
 * A survey in which one rank begins its calls late with this chance, by as much; or has no core for
 * so long. Returns whether what counts has changed.
 */
static bool leaf_survey(uint32_t rank, double chance, double behind, double held, double seconds)
{
	static const struct stream quiet;
	struct coll_samples_found found = {
		.sample = sample, .samples = EXCHANGES, .call = calls += 1000, .seconds = seconds,
		.ranks = 15, .from = first, .until = first + EXCHANGES,
		.looks = true, .held = true, .own_cores = true,
	};
	int i, j;

	for (i = 0; i < EXCHANGES; i++) {
		sample[i] = exchange(&quiet, first + i);
		for (j = 0; j < 2; j++) {
			if (sample[i].rank[j] != rank || random_part() >= chance)
				continue;
			if (held > 0)
				sample[i].held[j] = in_ns(held);
			else
				sample[i].waited[j] = 0;
			sample[i].waited[!j] += in_ns(behind);
			sample[i].ns += in_ns(behind / 2);
		}
	}
	first += EXCHANGES;
	return coll_lateness(&machine, &late, &found);
}

static void a_rank_that_is_often_late_becomes_a_leaf(void **unused)
{
	int changes = 0, i;

	(void)unused;
	begin(31);
	for (i = 0; i < 40; i++)
		changes += leaf_survey(3, 0.5, 700e-6, 0, 0.25);
	assert_int_equal(machine.late.ranks, 15);
	assert_int_equal(machine.late.rank[0], 3);
	assert_int_equal(machine.late.rank[1], COLL_NONE);
	assert_within(machine.late.part, 0.5, 1.5);
	assert_within(machine.late.behind, 700e-6, 1.2);
	assert_true(machine.late.stops.rate <= 0 && machine.link_noise.rate <= 0);
	assert_in_range(changes, 1, 4);	/* it does not flap */
}

static void a_leaf_ends_when_it_is_in_time(void **unused)
{
	int i;

	(void)unused;
	begin(32);
	for (i = 0; i < 40; i++)
		leaf_survey(3, 0.5, 700e-6, 0, 0.25);
	assert_int_equal(machine.late.ranks, 15);
	for (i = 0; i < 80 && machine.late.ranks; i++)
		leaf_survey(3, 0, 0, 0, 0.25);
	assert_int_equal(machine.late.ranks, 0);
	assert_true(i >= 4);
	for (i = 0; i < 40; i++)
		assert_false(leaf_survey(3, 0, 0, 0, 0.25));
}

static void a_rank_that_is_seldom_late_is_none(void **unused)
{
	int i;

	(void)unused;
	begin(33);
	for (i = 0; i < 200; i++)
		assert_false(leaf_survey(3, 0.03, 700e-6, 0, 0.25));
	assert_int_equal(machine.late.ranks, 0);
}

/* Its stops are the noise of ranks there is: `alone`. */
static void a_rank_without_a_core_becomes_a_leaf(void **unused)
{
	int i;

	(void)unused;
	begin(34);
	for (i = 0; i < 40; i++)
		leaf_survey(9, 0.5, 0, 400e-6, 0.25);
	assert_int_equal(machine.late.rank[0], 9);
	assert_true(machine.late.alone && machine.late.part <= 0);
	assert_within(machine.late.stops.duration, 400e-6, 1.2);
	assert_true(machine.late.stops.rate > machine.noise[0].rate);
}

/* Then it has the noise as well, which plans are chosen by: ranks that make theirs anew are to have no others. */
static void a_leaf_has_noise_that_is_given_from_a_survey_on(void **unused)
{
	int i;

	(void)unused;
	begin(34);
	for (i = 0; i < 40; i++)
		leaf_survey(9, 0.5, 0, 400e-6, 0.25);
	while (leaf_survey(9, 0.5, 0, 400e-6, 0.25))
		;
	assert_true(machine.late.alone);
	machine.noise[0] = (struct coll_noise_rate){ 10, 1e-3 };
	assert_true(leaf_survey(9, 0.5, 0, 400e-6, 0.25));
	assert_false(machine.late.alone);
	assert_false(leaf_survey(9, 0.5, 0, 400e-6, 0.25));
}

/* A rank that becomes a leaf makes no noise anew: that is as it is since the call in which it began. */
static void each_has_the_call_since_which_it_counts(void **unused)
{
	const struct stream noisy = { .chance = 0.1, .length = 2e-3 };
	uint32_t began;
	int i;

	(void)unused;
	begin(36);
	surveys(&noisy, 0.05, 60);
	began = late.link_call;
	assert_in_range(began, 1, calls);
	assert_int_equal(late.rank_call, 0);
	machine.noise[0] = (struct coll_noise_rate){ 10, 1e-3 };	/* it stays */
	for (i = 0; i < 40; i++)
		leaf_survey(3, 0.5, 700e-6, 0, 0.25);
	assert_int_equal(machine.late.rank[0], 3);
	assert_true(late.leaves_call > began);
	assert_int_equal(late.link_call, began);
}

/* ---- bad links of one rank -------------------------------------------------------- */

enum { ANY_PEER = -1 };

/*
 * A survey in which messages of one rank, or between it and one peer, are late with this chance; all others with
 * the chance `rest`. A leaf has but one peer, the one given. Returns whether what counts has changed.
 */
static bool links_survey(uint32_t rank, int peer, bool leaf, double chance, double rest)
{
	const struct stream bad = { .chance = chance, .length = 2e-3 }, good = { .chance = rest, .length = 2e-3 };
	struct coll_samples_found found = {
		.sample = sample, .call = calls += 1000, .seconds = 0.25,
		.ranks = 15, .from = first, .until = first + EXCHANGES,
		.looks = true, .held = true, .own_cores = true,
	};
	uint32_t i;

	for (i = 0; i < EXCHANGES; i++) {
		struct coll_sample *one = &sample[found.samples];

		*one = exchange(&good, first + i);
		if (one->rank[0] == rank) {
			if (leaf && (int)one->rank[1] != peer)
				continue;
			if (peer == ANY_PEER || (int)one->rank[1] == peer) {
				const uint32_t other = one->rank[1];

				*one = exchange(&bad, first + i);
				one->rank[0] = rank;
				one->rank[1] = other;
			}
		}
		found.samples++;
	}
	first += EXCHANGES;
	return coll_lateness(&machine, &late, &found);
}

/* While it is a leaf, an eighth of its exchanges is left to see. Noise is that of its messages all the time. */
static void a_rank_with_bad_links_becomes_a_leaf(void **unused)
{
	const double rate = -log1p(-0.2) / (alpha + 2e-3);
	int changes = 0, i;

	(void)unused;
	begin(41);
	for (i = 0; i < 40 && !machine.late.ranks; i++)
		links_survey(3, ANY_PEER, false, 0.2, 0);
	assert_in_range(i, 1, 20);
	for (i = 0; i < 80; i++) {
		changes += links_survey(3, i < 40 ? ANY_PEER : 8, i >= 40, 0.2, 0);
		assert_int_equal(machine.late.ranks, 15);
		assert_int_equal(machine.late.rank[0], 3);
		assert_int_equal(machine.late.rank[1], COLL_NONE);
		assert_true(machine.late.links_alone);
		assert_int_equal(machine.late.peer, COLL_NONE);
		assert_within(machine.late.links.rate, rate, 2.2);
		assert_within(machine.late.links.duration, 2e-3, 2);
		assert_within(machine.link_noise.rate, machine.late.links.rate * 2 / 15, 1.6);
	}
	assert_in_range(changes, 0, 6);		/* it does not flap */
}

static void a_leaf_for_its_links_ends_in_seconds(void **unused)
{
	int i;

	(void)unused;
	begin(42);
	for (i = 0; i < 40; i++)
		links_survey(3, ANY_PEER, false, 0.2, 0.0005);
	for (i = 0; i < 20; i++)
		links_survey(3, 8, true, 0.2, 0.0005);
	assert_true(machine.late.links_alone);
	for (i = 0; machine.late.ranks; i++)	/* one exchange of 64 is its own */
		links_survey(3, 8, true, 0.0005, 0.0005);
	assert_in_range(i, 4, 60);
	assert_true(machine.link_noise.rate <= 0);
	for (i = 0; i < 40; i++)
		links_survey(3, ANY_PEER, false, 0.0005, 0.0005);
	assert_int_equal(machine.late.ranks, 0);
}

static void noise_of_many_links_makes_no_leaf(void **unused)
{
	int seed, i;

	(void)unused;
	for (seed = 0; seed < 20; seed++) {
		begin(500 + seed);
		for (i = 0; i < 100; i++) {
			links_survey(3, ANY_PEER, false, 0.05, 0.05);
			assert_int_equal(machine.late.ranks, 0);
		}
		assert_true(machine.link_noise.rate > 0);
	}
}

/* ... and a leaf is given up when other links are late too. */
static void other_bad_links_end_a_leaf(void **unused)
{
	int i;

	(void)unused;
	begin(43);
	for (i = 0; i < 40; i++)
		links_survey(3, ANY_PEER, false, 0.2, 0);
	assert_true(machine.late.links_alone);
	for (i = 0; machine.late.ranks; i++) {
		links_survey(3, 8, true, 0.2, 0.1);
		assert_true(i < 40);
	}
	assert_true(machine.link_noise.rate > 0);
}

/* Its lower end is the leaf. Not seen any more, the link is used again after half a minute. */
static void a_bad_link_of_two_ranks_is_told(void **unused)
{
	int i;

	(void)unused;
	begin(44);
	for (i = 0; i < 80 && !machine.late.ranks; i++)
		links_survey(3, 11, false, 0.4, 0);
	assert_int_equal(machine.late.rank[0], 3);
	assert_int_equal(machine.late.peer, 11);
	for (i = 0; machine.late.ranks; i++)
		links_survey(3, 8, true, 0, 0);
	assert_in_range(i, LINK_UNSEEN_SECONDS * 4 - 1, LINK_UNSEEN_SECONDS * 4 + 4);
}

/* ---- what ranks cannot tell, or tell wrongly ------------------------------------------- */

/* Without the kernel's account a lost core looks like a late message: of crowded nodes none count. */
static void without_accounts_noise_is_of_links_or_none(void **unused)
{
	const struct stream noisy = { .chance = 0.1, .length = 2e-3, .stops = 500, .stopped = 1e-3 };

	(void)unused;
	begin(13);
	accounts = own_cores = false;
	surveys(&noisy, 0.05, 60);
	assert_true(machine.noise[0].rate <= 0 && machine.link_noise.rate <= 0);
	begin(13);
	accounts = false;
	surveys(&noisy, 0.05, 60);
	assert_true(machine.noise[0].rate <= 0 && machine.link_noise.rate > 0);
	accounts = true;
	surveys(&noisy, 0.05, 60);
	assert_true(machine.noise[0].rate > 0);
	accounts = false;
	surveys(&noisy, 0.05, 1);
	assert_true(machine.noise[0].rate <= 0);
}

static uint64_t random_bits(void)
{
	return (uint64_t)(random_part() * UINT32_MAX) << (int)(32 * random_part());
}

static void assert_is_noise(const struct coll_noise_rate *noise)
{
	assert_true(noise->rate >= 0 && noise->rate <= 1e9);
	assert_true(noise->duration >= 0 && noise->duration <= 1000);
	assert_true(noise->rate * noise->duration <= 1.01);	/* rounding */
}

/* Whatever a rank adds to the sum, the choice has numbers that an option might give. */
static void absurd_sums_are_noise_that_options_take(void **unused)
{
	static struct coll_samples samples;
	static struct coll_sample_cell sum[SAMPLE_CELLS];
	uint32_t round, i, found_ones = 0, noisy = 0;

	(void)unused;
	begin(14);
	machine.inside[COLL_LEVEL_DOMAIN].alpha = machine.inside[COLL_LEVEL_NODE].alpha = machine.alpha;
	coll_samples_init(&samples, 0, 16);
	for (round = 0; round < 2000; round++) {
		struct coll_samples_found found = {
			.sample = sample, .seconds = round % 3 ? random_bits() * 1e-9 : 0,
			.until = RUN_MOST, .looks = true, .held = true, .own_cores = true,
		};

		for (i = 0; i < SAMPLE_CELLS; i++)
			sum[i] = (struct coll_sample_cell){
				.ns = random_bits(), .waited = random_bits() << 32 | random_bits(),
				.bytes = random_bits() % 3 ? BYTES : random_bits(),
				.held = random_part() < 0.5 ? 0 : random_bits(),
				.away = random_part() < 0.5 ? 0 : random_bits(),
				.ranks = (random_bits() % 17) << 32 | random_bits() % 17,
				.run = i, .tag = SAMPLE_PAIR, .begun = random_bits(),
			};
		found.samples = coll_samples_collect(&samples, sum, sample);
		found_ones += found.samples;
		coll_lateness(&machine, &late, &found);
		assert_is_noise(&machine.link_noise);
		assert_is_noise(&machine.noise[0]);
		noisy += machine.link_noise.rate > 0 || machine.noise[0].rate > 0;
	}
	assert_true(found_ones > 2000 && noisy > 0);
}

/* Few bits count, so that those that differ by the last ones choose alike. */
static void noise_that_counts_has_eight_bits(void **unused)
{
	static const struct stream noisy = { .chance = 0.05, .length = 2e-3 };
	int exponent;
	double part;

	(void)unused;
	begin(15);
	surveys(&noisy, 0.05, 60);
	part = ldexp(frexp(machine.link_noise.rate, &exponent), 8);
	assert_true(part >= 128 && part <= 256 && part - floor(part) <= 0);
	part = ldexp(frexp(machine.link_noise.duration, &exponent), 8);
	assert_true(part >= 128 && part <= 256 && part - floor(part) <= 0);
}

/* The same exchanges in the order of another table: the latest late one is as long ago. */
static void the_order_of_cells_does_not_matter(void **unused)
{
	static const struct stream noisy = { .chance = 0.05, .length = 2e-3 };
	struct coll_samples_found found = { .sample = sample, .samples = EXCHANGES, .seconds = 0.05,
					    .until = RUN_MOST, .looks = true, .held = true,
					    .own_cores = true };
	struct coll_lateness first_late;
	struct coll_sample swap;
	uint32_t i;

	(void)unused;
	begin(16);
	for (i = 0; i < EXCHANGES; i++)
		sample[i] = exchange(&noisy, i);
	coll_lateness(&machine, &late, &found);
	first_late = late;
	begin(16);
	for (i = 0; i < EXCHANGES / 2; i++) {
		swap = sample[i];
		sample[i] = sample[EXCHANGES / 2 + i];
		sample[EXCHANGES / 2 + i] = swap;
	}
	coll_lateness(&machine, &late, &found);
	assert_memory_equal(&late.late_quiet, &first_late.late_quiet, sizeof(late.late_quiet));
	assert_true(late.late_quiet.share > 0 && late.late_quiet.evidence > 0);
}

/* ---- beginning and ending ----------------------------------------------------------- */

/* By these surveys, of which there may be many or few a second. */
static void noise_begins_and_ends_within_seconds(void **unused)
{
	static const struct stream quiet, noisy = { .chance = 0.05, .length = 2e-3 };
	static const double seconds[] = { 0.02, 0.2, 2 };
	int s, i;

	(void)unused;
	for (s = 0; s < 3; s++) {
		begin(8 + s);
		surveys(&quiet, seconds[s], 20);
		for (i = 1; !survey(&noisy, seconds[s]); i++)
			assert_true(i < 5);
		assert_true(machine.link_noise.rate > 0);
		surveys(&noisy, seconds[s], 20);
		for (i = 1; machine.link_noise.rate > 0; i++) {
			survey(&quiet, seconds[s]);
			assert_true(i < 6 + 2 / seconds[s]);
		}
		/* One event more does not bring the old ones back. */
		survey(&(struct stream){ .once = 2e-3 }, seconds[s]);
		assert_true(machine.link_noise.rate <= 0);
	}
}

/*
 * 250 exchanges a second, of which one in 20 or one in 50 was late; one in 500 is afterwards, by what else
 * a machine does. That took up to 15 s when each late one began the wait anew.
 */
static void the_end_of_noise_is_found_in_seconds(void **unused)
{
	static const struct stream rest = { .chance = 0.001, .length = 2e-3 };
	static const double chances[] = { 0.025, 0.01 }, usual[] = { 1.5, 4.2 };
	const double seconds = EXCHANGES / 250.;
	int c, seed, i, longer;

	(void)unused;
	for (c = 0; c < 2; c++) {
		const struct stream noisy = { .chance = chances[c], .length = 2e-3 };

		for (longer = seed = 0; seed < 20; seed++) {
			begin(100 * c + seed);
			surveys(&noisy, seconds, 120);
			while (machine.link_noise.rate <= 0)
				survey(&noisy, seconds);
			for (i = 0; machine.link_noise.rate > 0; i++)
				survey(&rest, seconds);
			longer += i * seconds > usual[c];
			assert_true(i * seconds < 8);
		}
		assert_in_range(longer, 0, 2);
	}
}

static void noise_that_goes_on_stays(void **unused)
{
	static const struct stream noisy = { .chance = 0.05, .length = 2e-3 };
	int changes = 0, i;

	(void)unused;
	begin(9);
	surveys(&noisy, 0.05, 60);
	for (i = 0; i < 1000; i++) {
		changes += survey(&noisy, 0.05);
		assert_true(machine.link_noise.rate > 0);
	}
	assert_in_range(changes, 0, 5);
}

/* Few events a survey: what they are by chance is no change, and noise that began stays a while. */
static void rare_noise_does_not_flap(void **unused)
{
	static const struct stream rare = { .chance = 0.004, .length = 2e-3 };
	int changes = 0, i;

	(void)unused;
	begin(17);
	for (i = 0; i < 1000; i++)
		changes += survey(&rare, 0.1);
	assert_in_range(changes, 1, 30);
	begin(18);
	for (i = 0; i < 1000 && !survey(&rare, 0.1); i++)
		;
	for (i = 0; i < 18; i++) {
		survey(&(struct stream){ 0 }, 0.1);
		assert_true(machine.link_noise.rate > 0);
	}
}

/* Calls of 10 ms, 64 exchanges between two surveys: of five surveys two meet a late one. */
static void rare_delays_of_long_calls_come_out(void **unused)
{
	static const struct stream quiet, rare = { .chance = 0.003, .length = 5e-3 };
	const double rate = -log1p(-rare.chance) / (alpha + rare.length);
	int changes = 0, counts = 0, i;

	(void)unused;
	begin(19);
	surveys(&quiet, 0.05, 60);
	for (i = 0; machine.link_noise.rate <= 0; i++) {
		survey(&rare, 2.5);
		assert_true(i < 60);
	}
	surveys(&rare, 2.5, 60);
	for (i = 0; i < 200; i++) {
		changes += survey(&rare, 2.5);
		if (machine.link_noise.rate <= 0)
			continue;
		counts++;
		assert_within(machine.link_noise.rate, rate, 4);
		assert_within(machine.link_noise.duration, rare.length, 3);
	}
	assert_in_range(counts, 180, 200);
	assert_in_range(changes, 0, 20);
	for (i = 0; machine.link_noise.rate > 0; i++) {
		survey(&quiet, 0.05);
		assert_true(i < 200);
	}
}

static void what_is_given_stays(void **unused)
{
	static const struct stream noisy = { .chance = 0.1, .length = 2e-3 };

	(void)unused;
	begin(10);
	machine.noise[0] = (struct coll_noise_rate){ 10, 1e-3 };
	surveys(&noisy, 0.05, 50);
	assert_true(machine.link_noise.rate <= 0);
	assert_false(coll_noise_is_found(&machine, &late));
	begin(10);
	machine.link_noise = (struct coll_noise_rate){ 10, 1e-3 };
	surveys(&noisy, 0.05, 50);
	assert_true(machine.link_noise.rate >= 10 && machine.link_noise.rate <= 10);
	begin(10);
	machine.link_noise = (struct coll_noise_rate){ 0, 1 };	/* none is given */
	surveys(&noisy, 0.05, 50);
	assert_true(machine.link_noise.rate <= 0 && machine.noise[0].rate <= 0);
}

/* Then ranks do not look for how long they had no core. */
static void in_short_calls_is_no_noise(void **unused)
{
	static const struct stream noisy = { .chance = 0.2, .length = 2e-3 };
	struct coll_samples_found found = { .sample = sample, .samples = EXCHANGES, .until = RUN_MOST };
	uint32_t i;

	(void)unused;
	begin(11);
	for (i = 0; i < EXCHANGES; i++)
		sample[i] = exchange(&noisy, i);
	assert_false(coll_lateness(&machine, &late, &found));
	surveys(&noisy, 0.05, 20);
	assert_true(machine.link_noise.rate > 0);
	assert_true(coll_lateness(&machine, &late, &found));
	assert_true(machine.link_noise.rate <= 0);
}

/* Messages cannot tell then who had a core. */
static void of_ranks_that_share_cores_colld_tells_noise(void **unused)
{
	static const struct stream crowded = { .stops = 200, .stopped = 1e-3 }, quiet = { .chance = 0 };

	(void)unused;
	begin(12);
	own_cores = false;
	told = 8, told_stops = 20, told_stopped = 5e-3;
	surveys(&crowded, 1, 4);
	assert_within(machine.noise[0].rate, 20, 1.01);
	assert_within(machine.noise[0].duration, 5e-3, 1.01);
	assert_true(coll_noise_is_by_colld(&machine, &late));
	told = 0;		/* colld has ended: for ten seconds it counts */
	surveys(&crowded, 1, 5);
	assert_true(machine.noise[0].rate > 0);
	surveys(&crowded, 1, 20);
	assert_true(machine.noise[0].rate <= 0);
	assert_false(coll_noise_is_by_colld(&machine, &late));
	told = 8, told_stops = 20;	/* it is back, and then nothing is taken any more */
	surveys(&quiet, 1, 2);
	assert_true(machine.noise[0].rate > 0);
	told_stops = 0;
	surveys(&quiet, 1, 20);
	assert_true(machine.noise[0].rate <= 0);
}

static void what_colld_cannot_have_seen_is_no_noise(void **unused)
{
	static const struct stream quiet = { .chance = 0 };

	(void)unused;
	begin(13);
	own_cores = false;
	told = 9, told_stops = 20, told_stopped = 5e-3;		/* of 8 ranks */
	surveys(&quiet, 1, 5);
	assert_true(machine.noise[0].rate <= 0);
	told = 8, told_stops = 500, told_stopped = 5e-3;	/* longer than it looked */
	surveys(&quiet, 1, 5);
	assert_true(machine.noise[0].rate <= 0);
	told = 8, told_stops = 20, told_stopped = 5e-6;		/* less than a thousandth */
	surveys(&quiet, 1, 5);
	assert_true(machine.noise[0].rate <= 0);
	own_cores = true;		/* their messages tell it, and there is none */
	told_stopped = 5e-3;
	surveys(&quiet, 1, 5);
	assert_true(machine.noise[0].rate <= 0);
}

/* ---- calls that were held up --------------------------------------------------------- */

/* Short calls: of so many late messages samples meet none. */
static bool short_calls(uint32_t seen, double runs, double length, double unmissed)
{
	struct coll_samples_found found = {
		.sample = sample, .samples = EXCHANGES, .call = calls += 20000, .seconds = 1, .ranks = 4,
		.from = first, .until = first + EXCHANGES, .looks = true, .held = true, .own_cores = true,
		.delays = { seen, runs, runs * length }, .received = 240000, .unmissed = unmissed,
	};
	const struct stream quiet = { .chance = 0 };
	uint32_t i;

	for (i = 0; i < EXCHANGES; i++)
		sample[i] = exchange(&quiet, first + i);
	first += EXCHANGES;
	return coll_lateness(&machine, &late, &found);
}

/* Of 120000 exchanges 300 had a late message, by 3 ms. */
static void held_up_calls_are_noise(void **unused)
{
	int i;

	(void)unused;
	begin(3);
	assert_true(short_calls(10, 300, 3e-3, 0));
	assert_true(late.by_calls);
	assert_within(machine.link_noise.duration, 3e-3, 1.1);
	assert_within(machine.link_noise.rate, 300. / 240000 / 3e-3, 1.1);
	for (i = 0; i < 20; i++)
		assert_false(short_calls(9 + i % 3, 270 + i % 3 * 30, 3e-3, 0));
}

static void a_few_on_any_machine_are_none(void **unused)
{
	int i;

	(void)unused;
	begin(4);
	for (i = 0; i < 20; i++)
		assert_false(short_calls(5, 5, 3e-3, 5));
	assert_true(machine.link_noise.rate <= 0);
}

/* What no call waits for any more goes on, until it does not come any more either. */
static void what_is_answered_goes_on(void **unused)
{
	int i, after;

	(void)unused;
	begin(5);
	assert_true(short_calls(10, 300, 3e-3, 0));
	for (i = 0; i < 40; i++)
		assert_false(short_calls(0, 0, 0, 2000));
	assert_true(machine.link_noise.rate > 0);
	for (after = 1; !short_calls(0, 0, 0, 3); after++)
		assert_true(after < 3);
	assert_true(machine.link_noise.rate <= 0);
	for (i = 0; i < 20; i++)
		assert_false(short_calls(0, 0, 0, 3));
}

/* Two calls a second, of 100 ms: a second or two without one is chance. */
static void rare_ones_are_waited_for(void **unused)
{
	int i, after;

	(void)unused;
	begin(6);
	for (i = 0; i < 40; i++)
		short_calls(i % 2 ? 0 : 4, i % 2 ? 0 : 4, 0.1, 0);
	assert_true(machine.link_noise.rate > 0);
	for (after = 1; !short_calls(0, 0, 0, 0); after++)
		assert_true(after < 8);
	assert_true(after > 2);
	assert_true(machine.link_noise.rate <= 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(delays_of_links_come_out),
		cmocka_unit_test(nothing_comes_of_nothing),
		cmocka_unit_test(imbalance_hides_delays_and_makes_none),
		cmocka_unit_test(who_does_not_look_finds_no_noise),
		cmocka_unit_test(wrong_costs_do_no_harm),
		cmocka_unit_test(stops_of_ranks_are_no_delays_of_links),
		cmocka_unit_test(ranks_that_share_cores_are_not_noise),
		cmocka_unit_test(late_ranks_are_named),
		cmocka_unit_test(a_rank_that_is_often_late_becomes_a_leaf),
		cmocka_unit_test(a_leaf_ends_when_it_is_in_time),
		cmocka_unit_test(a_rank_that_is_seldom_late_is_none),
		cmocka_unit_test(a_rank_without_a_core_becomes_a_leaf),
		cmocka_unit_test(a_leaf_has_noise_that_is_given_from_a_survey_on),
		cmocka_unit_test(each_has_the_call_since_which_it_counts),
		cmocka_unit_test(a_rank_with_bad_links_becomes_a_leaf),
		cmocka_unit_test(a_leaf_for_its_links_ends_in_seconds),
		cmocka_unit_test(noise_of_many_links_makes_no_leaf),
		cmocka_unit_test(other_bad_links_end_a_leaf),
		cmocka_unit_test(a_bad_link_of_two_ranks_is_told),
		cmocka_unit_test(without_accounts_noise_is_of_links_or_none),
		cmocka_unit_test(absurd_sums_are_noise_that_options_take),
		cmocka_unit_test(noise_that_counts_has_eight_bits),
		cmocka_unit_test(the_order_of_cells_does_not_matter),
		cmocka_unit_test(noise_begins_and_ends_within_seconds),
		cmocka_unit_test(the_end_of_noise_is_found_in_seconds),
		cmocka_unit_test(noise_that_goes_on_stays),
		cmocka_unit_test(rare_noise_does_not_flap),
		cmocka_unit_test(rare_delays_of_long_calls_come_out),
		cmocka_unit_test(what_is_given_stays),
		cmocka_unit_test(in_short_calls_is_no_noise),
		cmocka_unit_test(of_ranks_that_share_cores_colld_tells_noise),
		cmocka_unit_test(what_colld_cannot_have_seen_is_no_noise),
		cmocka_unit_test(held_up_calls_are_noise),
		cmocka_unit_test(a_few_on_any_machine_are_none),
		cmocka_unit_test(what_is_answered_goes_on),
		cmocka_unit_test(rare_ones_are_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
