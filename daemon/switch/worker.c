// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "daemon/common/clock.h"
#include "worker.h"

enum { BATCH_MAX = 256 };

struct switch_queued {
	struct switch_queued *next;
	struct switch_event event;
};

struct switch_queue {
	struct switch_queued *first, **end;
};

struct switch_worker {
	struct switch_device *s;
	pthread_t thread;
	pthread_mutex_t lock;		/* of the queues and `stop` */
	pthread_cond_t orders_come;
	struct switch_queue orders, events;
	bool stop;
	int fd;
	u64 reconcile;
	/* The thread's own: where each port leads to, as ordered; 0: nowhere. */
	u32 leads[SWITCH_PORTS_MAX + 1];
	struct switch_queued *moving;		/* begun by the driver; they run in parallel */
	u64 tick;			/* when the driver's tick is due */
	bool in_trouble;
};

/* Under the lock. */
static int switch_push(struct switch_queue *queue, const struct switch_event *event)
{
	struct switch_queued *queued = malloc(sizeof(*queued));

	if (!queued)
		return -ENOMEM;
	*queued = (struct switch_queued){ .event = *event };
	*queue->end = queued;
	queue->end = &queued->next;
	return 0;
}

static bool switch_pull(struct switch_queue *queue, struct switch_event *event)
{
	struct switch_queued *queued = queue->first;

	if (!queued)
		return false;
	*event = queued->event;
	queue->first = queued->next;
	if (!queue->first)
		queue->end = &queue->first;
	free(queued);
	return true;
}

static void switch_tell(struct switch_worker *worker, const struct switch_event *event)
{
	const u64 one = 1;
	bool first;

	pthread_mutex_lock(&worker->lock);
	first = !worker->events.first;
	switch_push(&worker->events, event);
	pthread_mutex_unlock(&worker->lock);
	if (first && write(worker->fd, &one, sizeof(one)) < 0)
		return;		/* the counter is full: it is readable anyway */
}

static void tell_order(struct switch_worker *worker, int kind, const struct switch_order *order)
{
	struct switch_event event = { .kind = kind, .order = *order };

	switch_tell(worker, &event);
}

static void is_done(struct switch_worker *worker, struct switch_order *order)
{
	u32 end;

	if (!order->moved)
		order->moved = colld_now();
	if (!order->locked)
		order->locked = order->moved;
	for (end = 0; !order->error && end < 2; end++)
		worker->leads[order->port[end]] =
			order->what == COLL_CIRCUIT_ORDER_UP ? order->port[!end] : 0;
	tell_order(worker, SWITCH_DONE, order);
}

static bool shares_port(const struct switch_order *a, const struct switch_order *b)
{
	return a->port[0] == b->port[0] || a->port[0] == b->port[1] ||
	       a->port[1] == b->port[0] || a->port[1] == b->port[1];
}

/* Completes what is due; with `down`, cancels what shares a port with it. */
static void end_moving(struct switch_worker *worker, u64 now, const struct switch_order *down)
{
	struct switch_queued **slot = &worker->moving;

	while (*slot) {
		struct switch_queued *one = *slot;
		struct switch_order *order = &one->event.order;

		if (down ? !shares_port(order, down) : order->ready > now) {
			slot = &one->next;
			continue;
		}
		*slot = one->next;
		if (down)
			order->error = -ECANCELED;
		else
			worker->s->ops->settle(worker->s, order);
		is_done(worker, order);
		free(one);
	}
}

static void is_moving(struct switch_worker *worker, const struct switch_order *order)
{
	struct switch_queued *one = malloc(sizeof(*one));

	if (!one)
		return;		/* the manager retries after its timeout */
	one->event.order = *order;
	one->next = worker->moving;
	worker->moving = one;
}

static u64 next_moving(const struct switch_worker *worker, u64 until)
{
	const struct switch_queued *one;

	if (worker->tick < until)
		until = worker->tick;

	for (one = worker->moving; one; one = one->next)
		if (one->event.order.ready < until)
			until = one->event.order.ready;
	return until;
}

static void carry_out(struct switch_worker *worker, struct switch_order *order, u32 orders)
{
	const u64 begun = colld_now();
	u32 i;

	for (i = 0; i < orders; i++) {
		order[i].begun = begun;
		order[i].ready = order[i].moved = order[i].locked = 0;
		tell_order(worker, SWITCH_BEGUN, &order[i]);
		if (order[i].what == COLL_CIRCUIT_ORDER_DOWN)
			end_moving(worker, 0, &order[i]);
	}
	worker->s->ops->change(worker->s, order, orders);
	for (i = 0; i < orders; i++)
		if (order[i].ready && !order[i].error)
			is_moving(worker, &order[i]);
		else
			is_done(worker, &order[i]);
}

/* Compares the switch's paths with the ordered ones. */
static void switch_reconcile(struct switch_worker *worker)
{
	struct switch_device *s = worker->s;
	struct switch_path path[SWITCH_PORTS_MAX];
	u32 has[SWITCH_PORTS_MAX + 1] = { 0 }, port;
	struct switch_event event = { .kind = SWITCH_TROUBLE };
	const int paths = s->ops->read(s, path, SWITCH_PORTS_MAX, event.order.why);
	bool silent = false;		/* since the list: each path would take a timeout */
	int i;

	if (paths < 0) {
		event.order.error = paths;
		if (!worker->in_trouble)
			switch_tell(worker, &event);
		worker->in_trouble = true;
		return;
	}
	worker->in_trouble = false;
	for (i = 0; i < paths; i++) {
		if (path[i].in > SWITCH_PORTS_MAX || path[i].out > SWITCH_PORTS_MAX)
			continue;
		has[path[i].in] = path[i].out;
	}
	for (port = 1; port <= SWITCH_PORTS_MAX; port++) {
		const u32 leads = worker->leads[port];

		if (has[port] == leads)
			continue;
		event = (struct switch_event){ .kind = SWITCH_DRIFT,
					       .order.port = { port, has[port] } };
		switch_tell(worker, &event);
		if (has[port] && !silent)
			silent = s->ops->remove(s, (struct switch_path){ port, has[port] }) == -ETIMEDOUT;
		if (!leads)
			continue;
		worker->leads[port] = worker->leads[leads] = 0;
		event = (struct switch_event){ .kind = SWITCH_LOST,
					       .order.port = { port, leads } };
		switch_tell(worker, &event);
	}
}

/* Under the lock: waits for orders, or until it is time to reconcile. */
static u32 take_batch(struct switch_worker *worker, struct switch_order *order, u64 until)
{
	const struct timespec end = { until / 1000000000, until % 1000000000 };
	struct switch_event event;
	u32 orders = 0;

	while (!worker->orders.first && !worker->stop)
		if (pthread_cond_timedwait(&worker->orders_come, &worker->lock, &end))
			break;
	while (orders < BATCH_MAX && !worker->stop && switch_pull(&worker->orders, &event)) {
		order[orders++] = event.order;
		/* Later orders may use the ports that this one frees: in the next batch. */
		if (worker->orders.first && order[orders - 1].what == COLL_CIRCUIT_ORDER_UP &&
		    worker->orders.first->event.order.what == COLL_CIRCUIT_ORDER_DOWN)
			break;
	}
	return orders;
}

static void *switch_work(void *argument)
{
	static struct switch_order order[BATCH_MAX];	/* there is one worker */
	struct switch_worker *worker = argument;
	u64 next = colld_now() + worker->reconcile;

	pthread_mutex_lock(&worker->lock);
	while (!worker->stop) {
		const u32 orders = take_batch(worker, order, next_moving(worker, next));

		if (worker->stop)
			break;
		pthread_mutex_unlock(&worker->lock);
		if (orders)
			carry_out(worker, order, orders);
		end_moving(worker, colld_now(), NULL);
		if (worker->s->ops->tick)
			worker->tick = worker->s->ops->tick(worker->s, colld_now());
		if (colld_now() >= next) {
			switch_reconcile(worker);
			next = colld_now() + worker->reconcile;
		}
		pthread_mutex_lock(&worker->lock);
	}
	pthread_mutex_unlock(&worker->lock);
	return NULL;
}

int switch_worker_start(struct switch_worker **made, struct switch_device *s, u64 reconcile_ns)
{
	struct switch_worker *worker = calloc(1, sizeof(*worker));
	pthread_condattr_t attributes;

	if (!worker)
		return -ENOMEM;
	worker->s = s;
	worker->reconcile = reconcile_ns;
	worker->tick = COLL_CIRCUIT_FOREVER;
	worker->orders.end = &worker->orders.first;
	worker->events.end = &worker->events.first;
	pthread_mutex_init(&worker->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&worker->orders_come, &attributes);
	worker->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	*made = worker;
	return worker->fd < 0 ? -errno : 0;
}

void switch_worker_adopt(struct switch_worker *worker, const u32 *port)
{
	worker->leads[port[0]] = port[1];
	worker->leads[port[1]] = port[0];
}

int switch_worker_give(struct switch_worker *worker, const struct switch_order *order)
{
	const struct switch_event event = { .order = *order };
	int error = 0;

	if (!worker->thread)
		error = -pthread_create(&worker->thread, NULL, switch_work, worker);
	if (error || !order->what)
		return error;
	pthread_mutex_lock(&worker->lock);
	error = switch_push(&worker->orders, &event);
	pthread_cond_signal(&worker->orders_come);
	pthread_mutex_unlock(&worker->lock);
	return error;
}

int switch_worker_fd(const struct switch_worker *worker)
{
	return worker->fd;
}

static bool take_event(struct switch_worker *worker, struct switch_event *event)
{
	bool there;

	pthread_mutex_lock(&worker->lock);
	there = switch_pull(&worker->events, event);
	pthread_mutex_unlock(&worker->lock);
	return there;
}

bool switch_worker_event(struct switch_worker *worker, struct switch_event *event)
{
	u64 count;

	/* The counter reports an event that comes between the two calls. */
	return take_event(worker, event) ||
	       (read(worker->fd, &count, sizeof(count)) > 0 && take_event(worker, event));
}

void switch_worker_stop(struct switch_worker *worker)
{
	struct switch_event event;

	if (!worker)
		return;
	pthread_mutex_lock(&worker->lock);
	worker->stop = true;
	pthread_cond_signal(&worker->orders_come);
	pthread_mutex_unlock(&worker->lock);
	if (worker->thread)
		pthread_join(worker->thread, NULL);
	while (switch_pull(&worker->orders, &event) || switch_pull(&worker->events, &event))
		;
	while (worker->moving) {
		struct switch_queued *one = worker->moving;

		worker->moving = one->next;
		free(one);
	}
	close(worker->fd);
	pthread_cond_destroy(&worker->orders_come);
	pthread_mutex_destroy(&worker->lock);
	free(worker);
}
