// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The version, and the names of errors. */
#include <errno.h>
#include <string.h>

#include "libcoll/coll.h"

#define TEXT(number) #number
#define VERSION_TEXT(major, minor) TEXT(major) "." TEXT(minor)

const char *coll_version(void)
{
	return VERSION_TEXT(COLL_VERSION_MAJOR, COLL_VERSION_MINOR);
}

int coll_version_number(void)
{
	return COLL_VERSION;
}

const char *coll_strerror(int error)
{
	switch (error < 0 ? -error : error) {
	case 0:
		return "ok";
	case EINVAL:
		return "invalid argument";
	case EOPNOTSUPP:
		return "the algorithm does not support this call";
	case EPROTO:
		return "the ranks' arguments do not match";
	case ETIMEDOUT:
		return "the deadline passed";
	case ECONNRESET:
		return "a rank was lost";
	case ECANCELED:
		return "canceled";
	case ENOMEM:
		return "out of memory";
	case EBUSY:
		return "in use";
	default:
		return strerror(error < 0 ? -error : error);
	}
}
