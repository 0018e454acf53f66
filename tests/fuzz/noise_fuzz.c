// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Any bytes as a plan of noise, and as a model's text: refused with a reason, or
 * a plan whose events come in order, are as long as they may be, and are the same
 * wherever their stream is entered; or a text that says the same when printed.
 */
#include <string.h>

#include "core/noise/text.h"
#include "fuzz.h"

enum { EVENTS = 100 };

static void run(const struct coll_noise_plan *plan, u64 number)
{
	u64 most = plan->model->longest ? plan->model->longest : COLL_NOISE_DURATION_MAX;
	struct coll_noise_stream stream = coll_noise_stream(plan, number), entered = stream;
	struct coll_noise_span event, again;
	u64 last = 0;
	int i;

	for (i = 0; i < EVENTS; i++) {
		event = coll_noise_next(plan, &stream);
		fuzz_must(event.start >= last && event.start >> 62 == 0, "events are not in order");
		fuzz_must(event.duration <= most, "an event is too long");
		coll_noise_seek(plan, &entered, event.start);
		again = coll_noise_next(plan, &entered);
		fuzz_must(again.start == event.start, "another event where it was entered");
		last = event.start;
	}
}

static void as_plan(const uint8_t *data, size_t bytes)
{
	struct coll_noise_model model;
	struct coll_noise_plan plan = { .model = &model };
	struct coll_noise_span *table;
	const char *wrong = NULL;
	u64 number;

	if (bytes < sizeof(model) + sizeof(number))
		return;
	memcpy(&model, data, sizeof(model));
	memcpy(&number, data + sizeof(model), sizeof(number));
	data += sizeof(model) + sizeof(number);
	bytes -= sizeof(model) + sizeof(number);
	plan.spans = bytes / sizeof(*table);
	table = malloc(plan.spans * sizeof(*table) + !plan.spans);
	memcpy(table, data, plan.spans * sizeof(*table));
	plan.table = table;
	if (!coll_noise_check(&plan, &wrong))
		run(&plan, number);
	else
		fuzz_must(wrong && *wrong, "refused without a reason");
	free(table);
}

/* Except models with a file: this machine's files must not be read here. */
static void as_text(const uint8_t *data, size_t bytes)
{
	struct coll_noise_said said, back;
	struct coll_noise_plan plan;
	struct coll_text_error error;
	char *text = calloc(1, bytes + 1), *printed;
	FILE *to;

	memcpy(text, data, bytes);
	if (strncmp(text, "replay", 6) && !strstr(text, "table=")) {
		if (coll_noise_parse(text, 1, &said, &error)) {
			fuzz_must(error.reason[0], "refused without a reason");
		} else {
			plan = coll_noise_said_plan(&said);
			to = open_memstream(&printed, &bytes);
			coll_noise_print(&plan, to);
			fclose(to);
			fuzz_must(!coll_noise_parse(printed, 2, &back, &error),
				  "what was printed is not parsed");
			fuzz_must(!memcmp(&said.model, &back.model, sizeof(back.model)),
				  "what was printed is parsed as something else");
			free(printed);
		}
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	as_plan(data, bytes);
	as_text(data, bytes);
	return 0;
}

static void take_model(struct coll_noise_model model, const struct coll_noise_span *table,
		       uint32_t spans, take_seed *take, void *argument)
{
	uint8_t bytes[sizeof(model) + sizeof(u64) + 4 * sizeof(*table)] = { 0 };

	memcpy(bytes, &model, sizeof(model));
	if (spans)
		memcpy(bytes + sizeof(model) + sizeof(u64), table, spans * sizeof(*table));
	take(bytes, sizeof(model) + sizeof(u64) + spans * sizeof(*table), argument);
}

void fuzz_seeds(take_seed *take, void *argument)
{
	static const struct coll_noise_span table[4] = { { 0, 5 }, { 3, 9 }, { 3, 1 }, { 900, 2 } };
	static const struct coll_noise_span lengths[2] = { { 0, 5 }, { 0, 9 } };
	static const char *const texts[] = {
		"periodic:period=10ms,duration=250us,phase=random,seed=7",
		"periodic:rate=1000,duration=2.5us,phase=staggered,streams=8",
		"poisson:rate=100,duration=50us,length=pareto,shape=1.5,longest=10ms",
		"poisson:period=1d,duration=100s,length=exponential,phase=same",
	};
	struct coll_noise_model model = { .phase = COLL_NOISE_STAGGERED, .streams = 3,
					  .period = 2000, .duration = 70, .seed = 1 };
	size_t i;

	take_model(model, NULL, 0, take, argument);
	model.phase = COLL_NOISE_RANDOM;
	model.streams = 0;
	model.arrival = COLL_NOISE_POISSON;
	model.length = COLL_NOISE_EXPONENTIAL;
	take_model(model, NULL, 0, take, argument);
	model.length = COLL_NOISE_PARETO;
	model.shape = 1001;
	model.longest = 5000;
	take_model(model, NULL, 0, take, argument);
	model.shape = 0;
	model.duration = 0;
	model.length = COLL_NOISE_TABLE;
	take_model(model, lengths, 2, take, argument);
	model.arrival = COLL_NOISE_REPLAY;
	take_model(model, table, 4, take, argument);
	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		take(texts[i], strlen(texts[i]), argument);
}
