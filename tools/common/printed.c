// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <string.h>

#include "arguments.h"
#include "command.h"
#include "printed.h"

/* A stream keeps that something failed, and not why: errno still tells it if nothing failed since. */
static int printed_before(int error)
{
	return error == ENOSPC || error == EDQUOT || error == EFBIG || error == EPIPE ? -error : -EIO;
}

int printed_error(FILE *to)
{
	const int before = errno;

	if (fflush(to))
		return -errno;
	return ferror(to) ? printed_before(before) : 0;
}

int printed_status(const char *command, int status)
{
	const int error = printed_error(stdout);

	if (!error)
		return status;
	fprintf(stderr, "%s %s: cannot write standard output: %s\n", argument_program, command,
		strerror(-error));
	return COMMAND_ERROR;
}
