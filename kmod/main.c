// SPDX-License-Identifier: GPL-2.0
/*
 * coll.ko: table of contents. Parts start in this order and stop in the other
 * one; the netlink family is there only while all of them are.
 */
#define pr_fmt(fmt) "coll: " fmt

#include <linux/module.h>

#include "netlink.h"
#include "part.h"

static const struct kcoll_part *const parts[] = {
	&kcoll_noise,
	&kcoll_watch,
	&kcoll_pin,
	&kcoll_circuit_part,
	&kcoll_device_part,
};

static void stop_parts(size_t started)
{
	while (started--)
		parts[started]->exit();
}

static int __init coll_init(void)
{
	size_t i;
	int error;

	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		error = parts[i]->init();
		if (error) {
			pr_err("%s does not start: %d\n", parts[i]->name, error);
			stop_parts(i);
			return error;
		}
	}
	error = kcoll_netlink_open(parts, ARRAY_SIZE(parts));
	if (error)
		stop_parts(ARRAY_SIZE(parts));
	return error;
}

static void __exit coll_exit(void)
{
	kcoll_netlink_close();
	stop_parts(ARRAY_SIZE(parts));
}

module_init(coll_init);
module_exit(coll_exit);

MODULE_DESCRIPTION("Noise injected, attributed and kept away");
MODULE_AUTHOR("The coll developers");
MODULE_LICENSE("GPL");
MODULE_VERSION(COLL_MODULE_VERSION);
