// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Any bytes as a capture of noise, in coll's format or another tool's: refused with a reason, or
 * a capture that is printed in every format and is the same when it is read again.
 */
#include "tools/noise/formats.h"
#include "fuzz.h"

enum { QUANTUM = 1000000, QUANTA_MAX = 4096 };	/* of what is printed: or it takes too long */

const char *argument_program = "fuzz";

static char *printed(const struct node_capture *capture, enum noise_format format, size_t *bytes)
{
	char *text;
	FILE *to = open_memstream(&text, bytes);

	fuzz_must(to != NULL, "out of memory");
	noise_format_print(capture, format, 0, QUANTUM, to);
	fclose(to);
	return text;
}

/* ftq has a line for each quantum. */
static bool is_short(const struct node_capture *capture)
{
	u32 i;

	for (i = 0; i < capture->head.cpus; i++)
		if (capture->cpu[i].watched > (u64)QUANTUM * QUANTA_MAX)
			return false;
	return true;
}

static void print_and_parse(const struct node_capture *capture)
{
	struct coll_text_error error;
	struct node_capture back;
	size_t bytes, again;
	char *data = printed(capture, NOISE_CAPTURE, &bytes), *other;

	fuzz_must(!node_capture_parse(data, bytes, &back, &error), "what was printed is not parsed");
	other = printed(&back, NOISE_CAPTURE, &again);
	fuzz_must(bytes == again && !memcmp(data, other, bytes),
		  "what was printed is parsed as something else");
	node_capture_free(&back);
	free(data);
	free(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const struct noise_import how = { .format = NOISE_GUESS };
	struct coll_text_error error = { 0 };
	struct node_capture capture;
	char *copy = malloc(bytes + !bytes);	/* of exactly this size: no byte beyond is read */
	size_t length;
	int format;

	memcpy(copy, data, bytes);
	node_capture_init(&capture);
	if (noise_format_parse(copy, bytes, &how, &capture, &error)) {
		fuzz_must(error.reason[0], "refused without a reason");
	} else if (!node_capture_finish(&capture)) {
		for (format = NOISE_CAPTURE; format < NOISE_FORMATS; format++)
			if (capture.head.cpus && (format != NOISE_FTQ || is_short(&capture)))
				free(printed(&capture, format, &length));
		print_and_parse(&capture);
	}
	node_capture_free(&capture);
	free(copy);
	return 0;
}

void fuzz_seeds(take_seed *take, void *argument)
{
	static const struct coll_noise_cpu cpu = { .cpu = 2, .watched = 2000000000, .loop = 10220 };
	struct node_capture capture;
	size_t bytes;
	char *text;
	u32 source;
	int format, i;

	node_capture_init(&capture);
	memset(capture.head.host, 0, sizeof(capture.head.host));	/* the same on each machine */
	memset(capture.head.kernel, 0, sizeof(capture.head.kernel));
	capture.head.threshold = 200;
	node_capture_add_cpu(&capture, &cpu);
	node_capture_source(&capture, COLL_NOISE_THREAD, 12, "kworker/0:1", &source);
	for (i = 0; i < 8; i++)
		node_capture_add_event(&capture, 1000 + 900000 * i, 700 + i, 2,
				       i % 2 ? COLL_NOISE_THREAD : COLL_NOISE_HARDWARE,
				       i % 2 ? source : 0);
	node_capture_finish(&capture);
	for (format = NOISE_CAPTURE; format < NOISE_FORMATS; format++) {
		text = printed(&capture, format, &bytes);
		take(text, bytes, argument);
		free(text);
	}
	node_capture_free(&capture);
}
