/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* What the library says on stderr by itself: lines of "coll: ...", by option log. */
#ifndef COLL_LOG_H
#define COLL_LOG_H

enum coll_log_level {
	COLL_LOG_OFF,
	COLL_LOG_ERROR,		/* this rank cannot do what it is asked for */
	COLL_LOG_WARN,		/* something is wrong, and the job goes on so far */
	COLL_LOG_INFO,		/* what was chosen or left out */
	COLL_LOG_DEBUG,		/* nothing more so far */
	COLL_LOG_LEVELS,
};

/* The level of this name, as "warn". -EINVAL: there is none. */
int coll_log_level(const char *name);

struct coll_options;

/* One line, in one piece, if the option's level has it. */
void coll_log(const struct coll_options *options, enum coll_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The same where no context is: COLL_LOG decides. */
void coll_log_by_environment(enum coll_log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
