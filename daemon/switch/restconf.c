// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Polatis' RESTCONF: the list optical-switch:cross-connects, one resource per path. A port
 * in use is refused with 409, a missing path with 404. As with SCPI, the result of an order
 * is what is read back.
 */
#include <curl/curl.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/common/clock.h"
#include "switch.h"

/* An answer of all cross-connects has some 100 KB. */
enum { BODY_MAX = 1 << 20 };

#define PATHS "/api/data/optical-switch:cross-connects"

struct restconf {
	CURL *curl;
	struct curl_slist *headers;
	char base[256];
	char *body;			/* of the latest answer */
	size_t bytes;
	char said[CURL_ERROR_SIZE];
};

/* ---- requests ------------------------------------------------------------- */

/* What answers may be no switch, and never end: curl then takes no more, and fails. */
static size_t keep_body(char *data, size_t size, size_t count, void *to)
{
	struct restconf *r = to;
	char *body = r->bytes + size * count < BODY_MAX ?
			     realloc(r->body, r->bytes + size * count + 1) : NULL;

	if (!body)
		return 0;
	r->body = body;
	memcpy(body + r->bytes, data, size * count);
	r->bytes += size * count;
	body[r->bytes] = 0;
	return size * count;
}

/* The status, or -errno. Its body is in r->body. */
static long switch_restconf_request(struct switch_device *s, const char *method,
				    const char *resource, const char *body)
{
	struct restconf *r = s->state;
	char url[512];
	long status = 0;
	CURLcode code;

	snprintf(url, sizeof(url), "%s%s", r->base, resource);
	r->bytes = 0;
	if (r->body)
		r->body[0] = 0;
	curl_easy_setopt(r->curl, CURLOPT_URL, url);
	if (body)
		curl_easy_setopt(r->curl, CURLOPT_POSTFIELDS, body);
	else
		curl_easy_setopt(r->curl, CURLOPT_HTTPGET, 1L);
	curl_easy_setopt(r->curl, CURLOPT_CUSTOMREQUEST, method);
	code = curl_easy_perform(r->curl);
	if (code == CURLE_OK) {
		curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &status);
		return status;
	}
	if (code == CURLE_WRITE_ERROR) {
		snprintf(r->said, sizeof(r->said), "its answer is longer than 1 MB, or there is no memory for it");
		return -EMSGSIZE;
	}
	if (!r->said[0])
		snprintf(r->said, sizeof(r->said), "%s", curl_easy_strerror(code));
	return code == CURLE_OPERATION_TIMEDOUT ? -ETIMEDOUT :
	       code == CURLE_COULDNT_CONNECT ? -ECONNREFUSED : -ECONNRESET;
}

/* The text of a refusal. */
static void switch_restconf_explain(const struct restconf *r, long status, char *why)
{
	json_t *body = r->body ? json_loads(r->body, 0, NULL) : NULL;
	json_t *errors = json_object_get(json_object_get(body, "ietf-restconf:errors"), "error");
	const char *text = json_string_value(json_object_get(json_array_get(errors, 0),
							     "error-message"));

	if (status < 0)
		snprintf(why, SWITCH_WHY, "the switch does not answer: %.100s", r->said);
	else
		snprintf(why, SWITCH_WHY, "HTTP %ld%s%.100s", status, text ? ": " : "",
			 text ? text : "");
	json_decref(body);
}

/* ---- paths ---------------------------------------------------------------- */

static int restconf_read(struct switch_device *s, struct switch_path *path, u32 max, char *why)
{
	const struct restconf *r = s->state;
	const long status = switch_restconf_request(s, "GET", PATHS, NULL);
	json_t *body, *list, *pair;
	size_t i;
	int paths = 0;

	if (status == 204)
		return 0;
	if (status != 200) {
		switch_restconf_explain(r, status, why);
		return status < 0 ? (int)status : status == 401 ? -EACCES : -EPROTO;
	}
	body = json_loads(r->body ? r->body : "", 0, NULL);
	list = json_object_get(json_object_get(body, "optical-switch:cross-connects"), "pair");
	if (!json_is_array(list)) {
		snprintf(why, SWITCH_WHY, "invalid list of cross-connects");
		paths = -EPROTO;
	}
	json_array_foreach(list, i, pair) {
		const json_int_t in = json_integer_value(json_object_get(pair, "ingress"));
		const json_int_t out = json_integer_value(json_object_get(pair, "egress"));

		if (in > 0 && out > 0 && paths < (int)max)
			path[paths++] = (struct switch_path){
				in, out > s->ports ? out - s->ports : out };
	}
	json_decref(body);
	return paths;
}

static long set_path(struct switch_device *s, u32 in, u32 out)
{
	char body[120];

	snprintf(body, sizeof(body), "{\"optical-switch:pair\":[{\"ingress\":%u,\"egress\":%u}]}",
		 in, out + s->ports);
	return switch_restconf_request(s, "POST", PATHS, body);
}

static long remove_path(struct switch_device *s, u32 in)
{
	char resource[100];

	snprintf(resource, sizeof(resource), PATHS "/pair=%u", in);
	return switch_restconf_request(s, "DELETE", resource, NULL);
}

/* ---- orders --------------------------------------------------------------- */

/* Only a refusal counts; the result is read back. False: the switch does not answer. */
static bool carry_out(struct switch_device *s, struct switch_order *order,
		      const struct switch_path *path, int paths)
{
	u32 end;

	for (end = 0; end < 2; end++) {
		const bool up = order->what == COLL_CIRCUIT_ORDER_UP;
		long status;

		/* The key is one port only: a path that leads elsewhere is another client's. */
		if (up == switch_has_path(path, paths, order->port[end], order->port[!end]))
			continue;
		status = up ? set_path(s, order->port[end], order->port[!end]) :
				   remove_path(s, order->port[end]);

		if (status == -ECONNRESET)	/* retried: the order may have been done in part */
			status = up ? set_path(s, order->port[end], order->port[!end]) :
				      remove_path(s, order->port[end]);
		if (status >= 200 && status < 300)
			continue;
		if (!up && status == 404)
			continue;
		order->error = status < 0 ? (int)status : status == 409 ? -EBUSY : -EIO;
		switch_restconf_explain(s->state, status, order->why);
		if (status < 0)
			return false;
	}
	return true;
}

/*
 * Orders down first. Each of up to 256 orders has a timeout of its own: the first one that the switch does not
 * answer speaks for the others, and none of these is tried.
 */
static void carry_out_all(struct switch_device *s, struct switch_order *order, u32 orders,
			  const struct switch_path *path, int paths)
{
	const struct switch_order *silent = NULL;
	int pass;
	u32 i;

	for (pass = COLL_CIRCUIT_ORDER_DOWN; pass >= COLL_CIRCUIT_ORDER_UP; pass--)
		for (i = 0; i < orders; i++) {
			if ((int)order[i].what != pass)
				continue;
			if (silent) {
				order[i].error = silent->error;
				strcpy(order[i].why, silent->why);
			} else if (!carry_out(s, &order[i], path, paths)) {
				silent = &order[i];
			}
		}
}

static void restconf_change(struct switch_device *s, struct switch_order *order, u32 orders)
{
	static struct switch_path path[SWITCH_PORTS_MAX];
	char why[SWITCH_WHY] = "";
	int paths = restconf_read(s, path, SWITCH_PORTS_MAX, why);
	u32 i;

	if (paths == -ECONNRESET)
		paths = restconf_read(s, path, SWITCH_PORTS_MAX, why);
	for (i = 0; i < orders; i++) {
		order[i].error = 0;
		order[i].why[0] = 0;
	}
	if (paths >= 0)
		carry_out_all(s, order, orders, path, paths);
	if (paths >= 0)
		paths = restconf_read(s, path, SWITCH_PORTS_MAX, why);
	if (paths == -ECONNRESET)
		paths = restconf_read(s, path, SWITCH_PORTS_MAX, why);
	for (i = 0; i < orders; i++) {
		const u32 *port = order[i].port;
		const bool there = switch_has_path(path, paths, port[0], port[1]);
		const bool back = switch_has_path(path, paths, port[1], port[0]);
		const bool good =
			order[i].what == COLL_CIRCUIT_ORDER_UP ? there && back : !there && !back;

		if (paths < 0) {
			order[i].error = paths;
			snprintf(order[i].why, SWITCH_WHY, "%s", why);
		} else if (good) {
			order[i].error = 0;
			order[i].moved = colld_now();
		} else if (!order[i].error) {
			order[i].error = -EIO;
			snprintf(order[i].why, SWITCH_WHY,
				 "the switch accepted the order and did not connect: "
				 "ports %u and %u", port[0], port[1]);
		}
	}
}

static int restconf_remove(struct switch_device *s, struct switch_path path)
{
	const long status = remove_path(s, path.in);

	return status == 404 || (status >= 200 && status < 300) ? 0 : status < 0 ? (int)status : -EIO;
}

/* ---- open, close ---------------------------------------------------------- */

static int restconf_open(struct switch_device *s, const char *argument, char *why)
{
	struct restconf *r = calloc(1, sizeof(*r));
	const char *ports = strstr(argument, " ports=");
	long status;

	s->state = r;
	if (!r)
		return -ENOMEM;
	s->ports = ports ? strtoul(ports + 7, NULL, 10) : 0;
	if (!s->ports || s->ports > SWITCH_PORTS_MAX || strncmp(argument, "http", 4)) {
		snprintf(why, SWITCH_WHY, "valid: http://USER:PASSWORD@HOST:8008 ports=N");
		return -EINVAL;
	}
	snprintf(r->base, sizeof(r->base), "%.*s", (int)strcspn(argument, " \t"), argument);
	r->curl = curl_easy_init();
	if (!r->curl)
		return -ENOMEM;
	r->headers = curl_slist_append(NULL, "Content-Type: application/yang-data+json");
	r->headers = curl_slist_append(r->headers, "Accept: application/yang-data+json");
	curl_easy_setopt(r->curl, CURLOPT_HTTPHEADER, r->headers);
	curl_easy_setopt(r->curl, CURLOPT_WRITEFUNCTION, keep_body);
	curl_easy_setopt(r->curl, CURLOPT_WRITEDATA, r);
	curl_easy_setopt(r->curl, CURLOPT_ERRORBUFFER, r->said);
	curl_easy_setopt(r->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(r->curl, CURLOPT_TIMEOUT_MS, (long)(s->timeout / 1000000));
	curl_easy_setopt(r->curl, CURLOPT_PROXY, "");	/* the switch is on the local network */
	status = switch_restconf_request(s, "GET", "/api", NULL);
	if (status == 200)
		return 0;
	switch_restconf_explain(r, status, why);
	return status < 0 ? (int)status : status == 401 ? -EACCES : -EPROTO;
}

static void restconf_close(struct switch_device *s)
{
	struct restconf *r = s->state;

	if (!r)
		return;
	curl_slist_free_all(r->headers);
	if (r->curl)
		curl_easy_cleanup(r->curl);
	free(r->body);
	free(r);
}

const struct switch_ops switch_restconf = {
	.name = "restconf", .valid = "http://USER:PASSWORD@HOST:8008 ports=N",
	.open = restconf_open, .close = restconf_close, .change = restconf_change,
	.read = restconf_read, .remove = restconf_remove,
};
