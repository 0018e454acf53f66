// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What coll_costs() says: costs that the world chooses by, and where each is from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "libcoll/boot/boot.h"
#include "libcoll/topology/costs.h"
#include "libcoll/topology/drift.h"

enum { MESSAGES = 64, BYTES = 1 << 20, CALL = 512, TEXT = 8192 };

static struct coll_boot boot;
static volatile bool in_child;	/* of a fork: its copy is read here, by no owner */
static struct coll_context context;
static struct coll_group world;
static char text[TEXT];

/* Two nodes of two ranks. Messages were found to take 1 ms in and between them. */
static int begin(void **state)
{
	struct coll_machine *machine = &context.options.machine;

	(void)state;
	boot = (struct coll_boot){ .ranks = 4, .local_ranks = 2 };
	memset(&context, 0, sizeof(context));
	context.boot = &boot;
	context.here = &in_child;
	context.world = &world;
	machine->inside[COLL_LEVEL_NODE] = (struct coll_level_cost){ .alpha = 1e-3, .overhead = 0.5e-3, .beta = 1e-9 };
	machine->alpha = 1e-3;
	machine->beta = 1e-9;
	context.costs.of[COLL_CLASS_NODE].cost = machine->inside[COLL_LEVEL_NODE];
	context.costs.of[COLL_CLASS_CLUSTER].cost.alpha = machine->alpha;
	memset(&world, 0, sizeof(world));
	world.context = &context;
	world.ranks = 4;
	world.options = context.options;
	world.costs = context.costs;
	return 0;
}

/* Messages of a class, of 0 and BYTES, take 20 us and 1 ns a byte. */
static const struct coll_samples_found *messages_tell(enum coll_link_class class)
{
	static struct coll_sample sample[MESSAGES];
	static struct coll_samples_found found;
	uint32_t i;

	for (i = 0; i < MESSAGES; i++) {
		const uint32_t bytes = i % 2 ? BYTES : 8;

		sample[i] = (struct coll_sample){ .class = class, .bytes = bytes, .ns = 20000 + bytes,
						  .waited = { 20000 + bytes, 20000 + bytes } };
	}
	found = (struct coll_samples_found){ .call = CALL, .sample = sample, .samples = MESSAGES };
	return &found;
}

/* The line of this option says so. */
static void assert_says(const char *option, const char *reason)
{
	const size_t length = strlen(option);
	const char *line, *end;

	assert_in_range(coll_costs(&context, text, sizeof(text)), 1, sizeof(text) - 1);
	for (line = text; *line; line = end + 1) {
		end = strchr(line, '\n');
		assert_non_null(end);
		if (!strncmp(line, option, length) && line[length] == ' ')
			break;
	}
	if (!*line || !memmem(line, end - line, reason, strlen(reason)))
		fail_msg("'%s' is not said of %s: %s", reason, option, text);
}

/* The program sets an option of the world: that counts. Surveys leave it, and the context is told. */
static void costs_are_those_of_the_world(void **state)
{
	(void)state;
	world.options.machine.alpha = 5e-6;
	assert_says("alpha", "given");
	assert_says("alpha", "= 5us");
	assert_true(coll_costs_surveyed(&world, messages_tell(COLL_CLASS_CLUSTER)) ||
		    coll_costs_surveyed(&world, messages_tell(COLL_CLASS_NODE)));
	assert_says("alpha", "= 5us");
	assert_memory_equal(&context.options.machine, &world.options.machine, sizeof(world.options.machine));
	assert_memory_equal(&context.costs, &world.costs, sizeof(world.costs));
}

/*
 * Nobody has measured between the nodes: that is what is inside of one, and follows it. A part that is cut down to its
 * whole is from where that is.
 */
static void what_is_taken_over_is_said_to_be(void **state)
{
	(void)state;
	assert_true(coll_costs_surveyed(&world, messages_tell(COLL_CLASS_NODE)));
	assert_says("node_alpha", "half a round trip: 64 exchanges before call 512");
	assert_says("node_overhead", "each more message of a burst: no more than node_alpha before call 512");
	assert_says("alpha", "half a round trip: as same node, 64 exchanges before call 512");
}

/* Noise of links is as it is since one call, noise of ranks and a late rank since others. */
static void each_kind_of_noise_has_a_call(void **state)
{
	struct coll_lateness *late = &world.costs.late;

	(void)state;
	late->link = late->rank = (struct coll_noise_rate){ 10, 1e-3 };
	late->leaves = (struct coll_late){ .ranks = 4, .rank = { 1, COLL_NONE, COLL_NONE, COLL_NONE }, .part = 0.5 };
	late->link_call = 512;
	late->rank_call = 1024;
	late->leaves_call = 4096;
	assert_says("# link_noise", "since call 512");
	assert_says("# noise", "since call 1024");
	assert_says("# late", "since call 4096");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(costs_are_those_of_the_world, begin),
		cmocka_unit_test_setup(what_is_taken_over_is_said_to_be, begin),
		cmocka_unit_test_setup(each_kind_of_noise_has_a_call, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
