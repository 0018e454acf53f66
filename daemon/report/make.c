// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "list.h"
#include "make.h"
#include "node/report/report.h"
#include "sandbox.h"

/* What is printed into it becomes the answer. */
struct report_made {
	struct colld_answer *answer;
	FILE *to;
	size_t bytes;
};

static bool made_begin(struct report_made *made, struct colld_answer *answer, u32 type)
{
	*made = (struct report_made){ .answer = answer };
	*answer = (struct colld_answer){ .head = { .status = 200, .type = type } };
	made->to = open_memstream(&answer->text, &made->bytes);
	return made->to;
}

static void made_end(struct report_made *made, bool good)
{
	if (fclose(made->to) || !good)
		colld_answer_free(made->answer);
	else
		made->answer->head.bytes = made->bytes;
}

static void made_json(struct report_made *made, json_t *json)
{
	const bool good = json && !json_dumpf(json, made->to, JSON_INDENT(2));

	putc('\n', made->to);
	json_decref(json);
	made_end(made, good);
}

/* ---- answers ------------------------------------------------------------------------ */

static void make_list(const struct report_question *question, const struct report_gathered *gathered,
		      const char *node, struct colld_answer *answer)
{
	struct report_made made;

	if (!made_begin(&made, answer, question->type))
		return;
	if (question->type == COLLD_ANSWER_JSON) {
		made_json(&made, report_list_json(gathered, node));
		return;
	}
	report_list_page(gathered, node, made.to);
	made_end(&made, true);
}

/* As coll show --dump writes them: coll report joins those of several nodes. */
static void make_records(const struct report_gathered *gathered, struct colld_answer *answer)
{
	const struct coll_flight_set *set = &gathered->set;
	struct report_made made;
	size_t i;

	if (!made_begin(&made, answer, COLLD_ANSWER_BYTES))
		return;
	for (i = 0; i < set->count; i++)
		fwrite(set->seen[i], sizeof(*set->seen[i]), 1, made.to);
	made_end(&made, !ferror(made.to));
}

static void make_job(const struct report_question *question, const struct report_gathered *gathered,
		     struct colld_answer *answer)
{
	const struct coll_flight_job job = { gathered->set.seen, gathered->set.count };
	struct coll_flight_report report;
	const int error = coll_flight_report_make(&report, &job);
	struct report_made made;

	if (error) {
		colld_answer_say(answer, 503, "job %s of user %u: %s", question->job, gathered->user,
				 error == -EPROTO ? "its ranks' records contradict each other" :
						    strerror(-error));
		return;
	}
	if (!made_begin(&made, answer, question->type))
		return;
	if (question->type == COLLD_ANSWER_JSON) {
		json_t *json = node_report_json(&report, &job);

		if (json)
			json_object_set_new(json, "user", json_integer(gathered->user));
		made_json(&made, json);
	} else {
		node_report_page(&report, &job, made.to);
		made_end(&made, true);
	}
	coll_flight_report_free(&report);
}

static void make_none(const struct report_question *question, const struct report_gathered *gathered,
		      const char *node, struct colld_answer *answer)
{
	char user[32] = "";

	if (question->of_user)
		snprintf(user, sizeof(user), " of user %u", question->user);
	colld_answer_say(answer, 404, "no job '%s'%s has ranks on %s now%s; /jobs lists those that have",
			 question->job, user, node, gathered->set.foreign ?
			 " (some have another version of libcoll)" : "");
}

void report_make(const struct report_question *question, const char *state,
		 struct colld_answer *answer)
{
	struct report_gathered gathered;
	const int error = report_gather(question, state, &gathered);
	char node[HOST_NAME_MAX + 1] = "";
	int refused;

	gethostname(node, sizeof(node) - 1);
	json_object_seed(0);		/* of a file */
	/* Where the machine has none, what follows reads memory that it has checked, as coll report does. */
	refused = report_sandbox_enter();
	if (refused && refused != -ENOSYS)
		colld_answer_say(answer, 503, "the report cannot give up its rights: %s", strerror(-refused));
	else if (error == -ETIMEDOUT)
		colld_answer_say(answer, 504, "the processes of %s could not be read in time: there are too "
				 "many, or they have too many files; with &user=NUMBER only that user's "
				 "are read", node);
	else if (error)
		colld_answer_say(answer, 503, "the ranks on %s cannot be read: %s", node, strerror(-error));
	else if (question->list)
		make_list(question, &gathered, node, answer);
	else if (gathered.several)
		colld_answer_say(answer, 409, "several users have a job '%s'; valid: with &user=NUMBER, "
				 "as /jobs lists them", question->job);
	else if (!gathered.set.count)
		make_none(question, &gathered, node, answer);
	else if (question->type == COLLD_ANSWER_BYTES)
		make_records(&gathered, answer);
	else
		make_job(question, &gathered, answer);
	report_gathered_free(&gathered);
}
