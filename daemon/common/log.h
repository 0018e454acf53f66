/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Log lines of colld on stderr. */
#ifndef COLL_DAEMON_LOG_H
#define COLL_DAEMON_LOG_H

#include <syslog.h>	/* LOG_ERR, LOG_WARNING, LOG_NOTICE, LOG_INFO */

/* One line, without its end; under systemd with the level that the journal reads. */
void colld_log(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
