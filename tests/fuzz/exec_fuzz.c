// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * What a peer that lies may have the exec floor do, above the links' checks: any valid header at any
 * time, chunks on streams, tagged messages, control messages, connections that end, amid runs
 * that start, wait and complete. The input says what happens in turn. The memory of a run is
 * freed when it has completed, and all buffers have exactly their size, so AddressSanitizer sees
 * a byte that is written too far or too late. The clock is the input's too.
 *
 * Length: seeds for each of the protocols that meet here.
 */
#include <errno.h>
#include <limits.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "libcoll/base/clock.h"
#include "libcoll/exec/failure.h"
#include "libcoll/exec/health.h"
#include "libcoll/exec/point_to_point.h"
#include "libcoll/exec/unexpected.h"
#include "tests/unit/exec_world.h"
#include "fuzz.h"

enum {
	STEPS_MAX = 60,
	RUNS = 12,			/* at a time */
	CREDIT = 65536,			/* uapi/coll_wire.h: of eager messages, which cost ... */
	EAGER_COST = 64,		/* ... so much each beside their bytes */
	STREAMS_MAX = 3,
	ANY = 3,			/* as a rank or a tag */
};

enum step {
	STEP_START,		/* a collective */
	STEP_SEND, STEP_RECV,	/* tagged */
	STEP_BEGIN,		/* a header arrives */
	STEP_BRING, STEP_END,	/* some of its payload, the rest */
	STEP_SPECULATE,		/* payload is received before its header, or no more */
	STEP_CONTROL,
	STEP_LEAVE,		/* what is queued first goes out */
	STEP_BREAK,		/* the connection ends */
	STEP_DETACH,		/* it is closed, and has no transfer in flight any more */
	STEP_TIME,
	STEPS,
};

enum shape { SHAPE_EXCHANGE, SHAPE_GATHER, SHAPE_OPTIONAL, SHAPE_CHAIN, SHAPE_SUM, SHAPES };

static const uint64_t sizes[] = { 0, 8, 100, 4096, 5000, 8192, 12288, 65536 };
enum { SIZES = sizeof(sizes) / sizeof(*sizes) };

/* A header as the input has it: 0 in each field is what the receiver expects. */
struct header_step {
	uint8_t connection;
	int8_t run;			/* beyond the next one */
	uint8_t slot, hash, size;
	int8_t more;			/* bytes beyond that size */
	uint8_t offset, chunk;		/* units */
	int8_t beside;			/* bytes beyond that offset */
} __attribute__((packed));

struct control_step {
	uint8_t connection, kind;
	uint32_t run, slot, hash;
} __attribute__((packed));

static struct coll_run *runs[RUNS];
static struct coll_planned *planned[SHAPES][SIZES];
static uint32_t tagged[RANKS];		/* messages and offers that a rank has sent here */
static uint64_t offered[RANKS];		/* length in the latest offer of a rank */
static uint64_t speculative[2][RANKS];	/* bytes that a link may receive before a header */
static uint8_t streams;			/* of the links: two bits each */
static uint64_t now;			/* while an input runs, else 0 */

/* In place of the C library's. */
int clock_gettime(clockid_t clock, struct timespec *time)
{
	if (!now)
		return syscall(SYS_clock_gettime, clock, time);
	time->tv_sec = now / COLL_SECOND;
	time->tv_nsec = now % COLL_SECOND;
	return 0;
}

/* ---- links ------------------------------------------------------------------ */

static void make_streams(struct coll_group *group, uint8_t bits)
{
	uint32_t rank;

	for (rank = 1; rank < RANKS; rank++, bits >>= 2)
		if (bits % (STREAMS_MAX + 1))
			streams_begin(coll_link_get(group, rank), bits % (STREAMS_MAX + 1));
		else
			coll_link_get(group, rank);
}

/* The group of tagged messages, or NULL. */
static struct coll_group *twin_of(void)
{
	const bool made = w.group->twin;
	struct coll_group *twin;

	if (coll_point_group(w.group, &twin))
		return NULL;
	if (!made)
		make_streams(twin, streams >> 4);
	return twin;
}

/* A connection: of the twin if bit 0 is set, of rank 1 or 2, the link's own or a stream. */
static struct coll_link *connection_of(uint8_t number)
{
	struct coll_group *twin = number & 1 ? twin_of() : NULL;
	struct coll_link *link = (twin ? twin : w.group)->links[1 + (number >> 1 & 1)];
	const uint32_t stream = number >> 2 & STREAMS_MAX;

	return stream && stream <= link->streams ? &link->stream[stream - 1] : link;
}

/* As libcoll/link/receive.c, for a link that its group always watches. */
static bool is_read(const struct coll_link *link)
{
	if (link->header_got || !link->attached ||
	    (link->state != LINK_UP && link->state != LINK_LEFT) ||
	    (link->goodbye && link->state != LINK_LEFT && !link->broken))
		return false;
	return link->whole->expected || link->broken || link->group->state != GROUP_OK ||
	       !coll_group_is_full(link->group);
}

/* For a message that arrives. */
static struct coll_link *connection_read(uint8_t number)
{
	struct coll_link *link = connection_of(number);

	coll_link_open(link->whole);
	return is_read(link) ? link : NULL;
}

/* ---- runs ------------------------------------------------------------------- */

/* Receives twice from rank 1, one after the other, and sends what came to rank 2. */
static struct coll_planned *chain(uint64_t bytes)
{
	struct coll_build *b = schedule_begin(0, 2 * bytes);
	uint32_t first = coll_emit_recv(b, 1, COLL_ADDRESS(COLL_OUT, 0), bytes);

	coll_emit_after(b, first);
	coll_emit_after(b, coll_emit_recv(b, 1, COLL_ADDRESS(COLL_OUT, bytes), bytes));
	coll_emit_send(b, 2, COLL_ADDRESS(COLL_OUT, 0), bytes);
	return schedule_end();
}

static struct coll_planned *planned_of(enum shape shape, uint32_t size)
{
	static struct coll_planned *(*const make[SHAPES])(uint64_t) = {
		[SHAPE_EXCHANGE] = exchange,
		[SHAPE_GATHER] = gather,
		[SHAPE_OPTIONAL] = with_optional_receive,
		[SHAPE_CHAIN] = chain,
		[SHAPE_SUM] = sum_of_two,
	};

	if (!planned[shape][size])
		planned[shape][size] = make[shape](sizes[size]);
	planned[shape][size]->references++;
	return planned[shape][size];
}

static void run_free(struct coll_run *run)
{
	coll_run_ended(run);
	free(run->received);
	free(run->in);
	free(run->out);
	free(run);
}

/* Of the application: those that have ended. */
static void free_ended(void)
{
	uint32_t i;

	for (i = 0; i < RUNS; i++) {
		if (!runs[i] || runs[i]->exec)
			continue;
		run_free(runs[i]);
		runs[i] = NULL;
	}
}

static struct coll_run **free_slot(void)
{
	uint32_t i = 0;

	while (i < RUNS && runs[i])
		i++;
	return i < RUNS ? &runs[i] : NULL;
}

static struct coll_run *run_new(uint64_t in, uint64_t out)
{
	struct coll_run *run = calloc(1, sizeof(*run));

	fuzz_must(run != NULL, "out of memory");
	run->group = w.group;
	run->in = calloc(1, in);
	run->out = calloc(1, out);
	run->received = calloc(1, sizeof(*run->received));
	fuzz_must(run->in && run->out && run->received, "out of memory");
	return run;
}

static void step_start(struct fuzz_input *in)
{
	struct coll_run **slot = free_slot();
	const enum shape shape = fuzz_byte(in) % SHAPES;
	struct coll_planned *plan = planned_of(shape, fuzz_byte(in) % SIZES);

	if (!slot) {
		coll_planned_put(plan);
		return;
	}
	*slot = run_new(plan->schedule->buffer[COLL_IN], plan->schedule->buffer[COLL_OUT]);
	(*slot)->planned = plan;
	coll_exec_start(*slot, coll_now() + 60 * COLL_SECOND);
}

static void step_tagged(struct fuzz_input *in, bool sends)
{
	struct coll_run **slot = free_slot();
	const uint8_t rank = fuzz_byte(in) % (RANKS + 1), tag = fuzz_byte(in) % (ANY + 1);
	const uint64_t bytes = sizes[fuzz_byte(in) % SIZES];

	if (!slot || (sends && rank == ANY) || !twin_of())
		return;
	*slot = run_new(sends ? bytes : 0, sends ? 0 : bytes);
	(*slot)->tag = !sends && tag == ANY ? COLL_ANY_TAG : tag;
	(*slot)->call = (struct coll_call){
		.collective = sends ? COLL_CALL_SEND : COLL_CALL_RECV,
		.root = rank == ANY ? COLL_NONE : rank,
		.ranks = RANKS,
		.count = bytes,
		.element = 1,
		.commutative = true,
	};
	if (!coll_run_plan(*slot))
		coll_run_begin(*slot);
}

/* ---- what arrives ------------------------------------------------------------- */

static void headers_of_tagged(const struct header_step *step, uint32_t rank,
			      struct coll_header *header)
{
	header->hash = COLL_POINT_EAGER + step->hash;
	header->run = tagged[rank] + step->run;
	if (header->hash == COLL_POINT_GRANT || header->hash == COLL_POINT_LONG)
		header->run = (uint8_t)step->run;
	if (header->hash == COLL_POINT_CREDIT)
		header->slot = step->slot * EAGER_COST;
	if (header->hash != COLL_POINT_OFFER || step->beside)
		return;
	offered[rank] = header->bytes;
	header->bytes = sizeof(offered[rank]);
}

static struct coll_header header_from(const struct header_step *step, const struct coll_link *link)
{
	struct coll_header header = {
		.kind = COLL_MESSAGE_DATA,
		.version = COLL_WIRE_VERSION,
		.chunk = step->chunk,
		.run = link->group->next_run + step->run,
		.slot = step->slot,
		.hash = HASH + step->hash,
		.bytes = sizes[step->size % SIZES] + step->more,
		.offset = (uint64_t)step->offset * COLL_CHUNK_UNIT + step->beside,
	};

	if (link->group->peers)
		headers_of_tagged(step, link->rank, &header);
	return header;
}

/* What was received before its header is moved, unless it is there already. */
static void end_speculation(struct coll_link *link, uint64_t bytes)
{
	struct coll_exec *exec = link->speculative_exec;
	const bool right = link->target && link->target == link->speculative;

	if (!exec)
		return;
	link->speculative_exec = NULL;
	link->speculative = NULL;
	coll_link_events(link->group)->release(exec);
	if (right)
		message_brings(link, 1, bytes);
}

static void speculate(struct coll_link *link)
{
	uint64_t *bytes = &speculative[link->group != w.group][link->rank];
	uint8_t *target = NULL;

	if (link->speculative_exec || link->number || link->streams || !link->expected) {
		end_speculation(link, 0);
		return;
	}
	link->speculative_exec = coll_link_events(link->group)->expect(link, &target, bytes);
	if (!link->speculative_exec)
		return;
	*bytes = *bytes < SPECULATIVE_MAX ? *bytes : SPECULATIVE_MAX;
	link->speculative = target;
}

static void message_is_whole(struct coll_link *link)
{
	const struct coll_header *header = &link->header;
	const uint64_t *length = &offered[link->rank];

	message_brings(link, 1, link->payload_left);
	if (link->group->peers && link->target && header->hash == COLL_POINT_OFFER &&
	    header->bytes == sizeof(*length))
		memcpy(link->target - sizeof(*length), length, sizeof(*length));
	message_ends(link, 1);
}

static void step_begin(struct fuzz_input *in)
{
	struct coll_header header;
	struct header_step step;
	struct coll_link *link;
	uint64_t bytes;

	fuzz_copy(in, &step, sizeof(step));
	link = connection_read(step.connection);
	if (!link)
		return;
	header = header_from(&step, link);
	bytes = speculative[link->group != w.group][link->rank];
	if (link->speculative_exec)
		memset(link->speculative, 1, bytes);
	if (!coll_header_valid(&header)) {
		coll_link_events(link->group)->failed(link->group, -EPROTO, link->rank, 0,
						      "sent a malformed header");
		coll_link_close(link);
		return;
	}
	message_begins(link, header);
	if (link->group->peers && (link->unexpected || link->exec) &&
	    header.hash <= COLL_POINT_OFFER)
		tagged[link->rank]++;
	end_speculation(link, bytes);
	if (!link->payload_left)
		message_is_whole(link);
}

static void step_payload(struct fuzz_input *in, bool rest)
{
	struct coll_link *link = connection_of(fuzz_byte(in));

	if (!link->header_got || link->state == LINK_CLOSED || link->state == LINK_LOST)
		return;
	if (!rest)
		message_brings(link, 1, EAGER_COST * (1 + (uint64_t)fuzz_byte(in)));
	if (rest || !link->payload_left)
		message_is_whole(link);
}

static void step_control(struct fuzz_input *in)
{
	struct control_step step;
	struct coll_header header;
	struct coll_link *link;

	fuzz_copy(in, &step, sizeof(step));
	header = (struct coll_header){
		.kind = COLL_MESSAGE_PING + step.kind % (COLL_MESSAGE_BYE - COLL_MESSAGE_DATA),
		.version = COLL_WIRE_VERSION,
		.run = step.run,
		.slot = step.slot,
		.hash = step.hash,
	};
	link = connection_read(step.connection);
	if (link && !link->speculative_exec)
		coll_link_events(link->group)->control(link, &header);
}

static void detach(struct coll_link *link)
{
	if (link->state == LINK_CLOSED && link->attached)
		link_detaches(link);
}

static void pass_time(uint64_t ns)
{
	now += ns;
	if (now >= w.context.engine.next_check)
		coll_health_check(&w.context, now);
}

static void step_on_link(enum step what, struct coll_link *link)
{
	if (what == STEP_SPECULATE && (link->speculative_exec || is_read(link)))
		speculate(link);
	else if (what == STEP_LEAVE && link->queue)
		message_leaves(link);
	else if (what == STEP_BREAK)
		link_breaks(link);
	else if (what == STEP_DETACH)
		detach(link);
}

static void fuzz_step(struct fuzz_input *in)
{
	const enum step what = fuzz_byte(in) % STEPS;

	switch (what) {
	case STEP_START:
		step_start(in);
		break;
	case STEP_SEND:
	case STEP_RECV:
		step_tagged(in, what == STEP_SEND);
		break;
	case STEP_BEGIN:
		step_begin(in);
		break;
	case STEP_BRING:
	case STEP_END:
		step_payload(in, what == STEP_END);
		break;
	case STEP_CONTROL:
		step_control(in);
		break;
	case STEP_TIME:
		pass_time(MS << fuzz_byte(in) % 17);
		break;
	default:
		step_on_link(what, connection_of(fuzz_byte(in)));
	}
}

/* ---- what must hold -------------------------------------------------------------- */

static uint64_t list_capacity(const struct coll_unexpected *kept)
{
	uint64_t bytes = 0;

	for (; kept; kept = kept->next)
		bytes += kept->capacity;
	return bytes;
}

/* What a peer was not asked for, and no receive has got. */
static uint64_t eager_cost(const struct coll_link *link)
{
	const struct coll_unexpected *kept;
	uint64_t cost = 0;

	for (kept = link->kept; kept; kept = kept->next)
		if (kept->header.hash == COLL_POINT_EAGER)
			cost += kept->header.bytes + EAGER_COST;
	return cost;
}

static void check_kept(const struct coll_group *group)
{
	uint64_t bytes = list_capacity(group->unexpected_free);
	uint32_t rank;

	for (rank = 0; rank < RANKS; rank++) {
		const struct coll_link *link = group->links[rank];

		bytes += link ? list_capacity(link->kept) : 0;
		fuzz_must(!link || !group->peers || eager_cost(link) <= CREDIT,
			  "a link keeps more than its peer's credit");
	}
	fuzz_must(bytes == group->unexpected_bytes, "kept messages have another size than counted");
}

static void detach_all(struct coll_group *group)
{
	uint32_t rank, i;

	for (rank = 0; rank < RANKS; rank++) {
		struct coll_link *link = group->links[rank];

		for (i = 0; link && i < link->streams; i++)
			detach(&link->stream[i]);
		if (link)
			detach(link);
	}
}

/* Whatever happened, this ends all runs. */
static void end_all(void)
{
	uint32_t i, size;

	coll_group_fail(w.group, -ECANCELED, 0, COLL_NONE, "revoked the group");
	for (i = 0; i < 3; i++)
		pass_time(COLL_SECOND);
	fuzz_must(w.group->state == GROUP_FAILED, "a group does not fail in time");
	if (w.group->twin)
		detach_all(w.group->twin);
	detach_all(w.group);
	free_ended();
	for (i = 0; i < RUNS; i++)
		fuzz_must(!runs[i], "a run does not end with its group");
	for (i = 0; i < SHAPES; i++)
		for (size = 0; size < SIZES; size++) {
			if (planned[i][size])
				coll_planned_put(planned[i][size]);
			planned[i][size] = NULL;
		}
}

/* The sanitizers' runtime has it. */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

/* strerror() keeps the text of the latest error that it does not know. */
static size_t allocated(void)
{
	strerror(INT_MAX);
	return __sanitizer_get_current_allocated_bytes ? __sanitizer_get_current_allocated_bytes() : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct fuzz_input in = { data, bytes };
	const size_t before = allocated();
	int steps;

	now = 1000 * COLL_SECOND;
	memset(tagged, 0, sizeof(tagged));
	world_begin();
	streams = fuzz_byte(&in);
	make_streams(w.group, streams);
	if (fuzz_byte(&in))
		w.group->options.unexpected_bytes = sizes[4];
	for (steps = 0; in.bytes && steps < STEPS_MAX; steps++) {
		fuzz_step(&in);
		free_ended();
		check_kept(w.group);
		if (w.group->twin)
			check_kept(w.group->twin);
	}
	end_all();
	world_end();
	now = 0;
	fuzz_must(allocated() == before, "memory is left");
	return 0;
}

/* ---- seeds ------------------------------------------------------------------- */

enum {
	OWN = 0, TWIN = 1, SECOND = 2,		/* connections */
	STREAM = 4,
	EAGER = 0, OFFER, GRANT, LONG, CREDITED,	/* hash of a tagged message, from EAGER on */
};

/* A header's fields behind its connection; then the payload comes. */
#define MESSAGE(link, run, slot, hash, size, offset, chunk) \
	STEP_BEGIN, link, (uint8_t)(run), slot, hash, size, 0, offset, chunk, 0, STEP_END, link
#define BEGIN(link, run, slot, hash, size, offset, chunk) \
	STEP_BEGIN, link, (uint8_t)(run), slot, hash, size, 0, offset, chunk, 0
#define FOUR(...) __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__
#define TAKE(...) do { \
		static const uint8_t right[] = { __VA_ARGS__ }; \
		take(right, sizeof(right), argument); \
	} while (0)

static void seeds_of_collectives(take_seed *take, void *argument)
{
	TAKE(0, 0, STEP_START, SHAPE_EXCHANGE, 2, MESSAGE(OWN, -1, 0, 0, 2, 0, 0), STEP_LEAVE, OWN);
	TAKE(0, 0, MESSAGE(OWN, 0, 0, 0, 4, 0, 0), STEP_START, SHAPE_EXCHANGE, 4, STEP_LEAVE, OWN,
	     STEP_START, SHAPE_EXCHANGE, 4, STEP_SPECULATE, OWN, MESSAGE(OWN, -1, 0, 0, 4, 0, 0),
	     STEP_LEAVE, OWN);
	TAKE(0, 1, MESSAGE(SECOND, 0, 0, 0, 5, 0, 0), STEP_START, SHAPE_GATHER, 5,
	     BEGIN(OWN, -1, 0, 0, 5, 0, 1), STEP_BRING, OWN, 30, STEP_END, OWN,
	     MESSAGE(OWN, -1, 0, 0, 5, 1, 0));
	TAKE(0, 0, STEP_START, SHAPE_OPTIONAL, 3, BEGIN(SECOND, -1, 0, 0, 3, 0, 0),
	     MESSAGE(OWN, -1, 0, 0, 3, 0, 0), STEP_END, SECOND);
	TAKE(0, 0, STEP_START, SHAPE_CHAIN, 2, MESSAGE(OWN, -1, 1, 0, 2, 0, 0),
	     MESSAGE(OWN, -1, 0, 0, 2, 0, 0), STEP_LEAVE, SECOND);
	TAKE(0, 0, STEP_START, SHAPE_SUM, 4, BEGIN(OWN, -1, 0, 0, 4, 0, 0), STEP_BRING, OWN, 30,
	     MESSAGE(SECOND, -1, 0, 0, 4, 0, 0), STEP_BRING, OWN, 10, STEP_END, OWN);
	TAKE(0, 0, MESSAGE(SECOND, 0, 0, 0, 5, 0, 0), STEP_START, SHAPE_SUM, 5,
	     BEGIN(OWN, -1, 0, 0, 5, 0, 0), STEP_BRING, OWN, 30, STEP_BREAK, OWN, STEP_TIME, 12,
	     STEP_DETACH, OWN);
	TAKE(0, 0, STEP_START, SHAPE_GATHER, 3, STEP_TIME, 15, STEP_TIME, 12, STEP_BREAK, OWN,
	     STEP_TIME, 3, STEP_TIME, 10, STEP_DETACH, OWN);
}

static void seeds_of_streams(take_seed *take, void *argument)
{
	TAKE(2, 0, STEP_START, SHAPE_EXCHANGE, 4, BEGIN(STREAM, -1, 0, 0, 4, 1, 0),
	     BEGIN(2 * STREAM, -1, 0, 0, 4, 0, 1), STEP_END, STREAM, STEP_END, 2 * STREAM,
	     STEP_LEAVE, OWN);
	TAKE(3, 0, BEGIN(STREAM, 0, 0, 0, 6, 2, 0), BEGIN(2 * STREAM, 0, 0, 0, 6, 0, 1),
	     BEGIN(3 * STREAM, 0, 0, 0, 6, 1, 1), STEP_END, 2 * STREAM, STEP_START, SHAPE_CHAIN, 6,
	     STEP_END, STREAM, STEP_END, 3 * STREAM, MESSAGE(OWN, -1, 1, 0, 6, 0, 0));
	TAKE(0xff, 0, STEP_START, SHAPE_GATHER, 5, BEGIN(STREAM, -1, 0, 0, 5, 1, 0),
	     STEP_BREAK, 2 * STREAM, STEP_END, STREAM, STEP_BREAK, OWN, STEP_TIME, 4);
}

static void seeds_of_tagged(take_seed *take, void *argument)
{
	TAKE(0, 0, STEP_SEND, 1, 1, 2, STEP_LEAVE, TWIN, MESSAGE(TWIN, 0, 1, EAGER, 2, 0, 0),
	     STEP_RECV, 1, 1, 3);
	TAKE(0, 0, STEP_RECV, ANY, ANY, 4, MESSAGE(TWIN | SECOND, 0, 2, EAGER, 3, 0, 0));
	TAKE(0, 0, STEP_SEND, 1, 0, 6, STEP_LEAVE, TWIN, MESSAGE(TWIN, 0, 0, GRANT, 0, 0, 0),
	     STEP_LEAVE, TWIN, STEP_SEND, 2, 0, 6,
	     STEP_BEGIN, TWIN | SECOND, 0, 1, GRANT, 0, 0, 0, 0, 0);
	TAKE(0, 0, STEP_RECV, 1, 1, 6, MESSAGE(TWIN, 0, 1, OFFER, 6, 0, 0), STEP_LEAVE, TWIN,
	     STEP_SPECULATE, TWIN, BEGIN(TWIN, 0, 1, LONG, 6, 0, 1), STEP_END, TWIN,
	     MESSAGE(TWIN, 0, 1, LONG, 6, 1, 0));
	TAKE(0x20, 0, MESSAGE(TWIN, 0, 1, OFFER, 5, 0, 0), STEP_RECV, ANY, 1, 5, STEP_LEAVE, TWIN,
	     BEGIN(TWIN | STREAM, 0, 1, LONG, 5, 1, 0), BEGIN(TWIN | 2 * STREAM, 0, 1, LONG, 5, 0, 1),
	     STEP_END, TWIN | STREAM, STEP_END, TWIN | 2 * STREAM);
	TAKE(0, 0, BEGIN(TWIN, 0, 1, EAGER, 2, 0, 0), STEP_RECV, 1, 1, 2, STEP_END, TWIN,
	     STEP_SEND, 1, 2, 3, STEP_LEAVE, TWIN,
	     STEP_BEGIN, TWIN, 0, 65, CREDITED, 0, 0, 0, 0, 0);
	TAKE(0, 0, FOUR(STEP_RECV, 1, 1, 3, MESSAGE(TWIN, 0, 1, EAGER, 3, 0, 0)), STEP_LEAVE, TWIN);
	TAKE(0, 0, FOUR(FOUR(MESSAGE(TWIN, 0, 1, EAGER, 3, 0, 0))), STEP_RECV, 1, 1, 3);
	TAKE(0, 0, STEP_SEND, 0, 1, 2, STEP_RECV, 0, 1, 2, STEP_RECV, 0, 2, 6, STEP_SEND, 0, 2, 6);
}

void fuzz_seeds(take_seed *take, void *argument)
{
	struct { uint8_t streams, limit, what; struct control_step step; } __attribute__((packed))
		control = { .what = STEP_CONTROL };

	seeds_of_collectives(take, argument);
	seeds_of_streams(take, argument);
	seeds_of_tagged(take, argument);
	for (control.step.kind = 0; control.step.kind < 4; control.step.kind++) {
		control.step.hash = HASH;
		take(&control, sizeof(control), argument);
	}
}
