// SPDX-License-Identifier: GPL-2.0
/*
 * coll.ko: table of contents.
 *
 *	noise	injects noise on chosen CPUs		(netlink)
 *	watch	attributes the stolen time of CPUs	(netlink)
 *	pin	keeps tasks away from CPUs		(netlink)
 *	circuit	holds traffic until its circuit is up	(netlink)
 *	device	executes collectives: offload		(/dev/coll)
 *
 * Subsystems start in the order of the table below and stop in reverse. The netlink
 * family is registered only while all of them run. The device starts last: a program may
 * open it at once, and a module whose start fails after that is freed under the open file.
 *
 * Floors, each of which calls only those below it:
 *
 *	device	the open file, its commands by ioctl and io_uring
 *	exec	groups, loaded schedules, runs, the thread that executes them
 *	link	messages over attached sockets
 *	memory	pinned pages and scratch
 *	common	netlink family, tracepoints, older kernels
 */
#define pr_fmt(fmt) "coll: " fmt

#include <linux/module.h>

#include "kmod/common/netlink.h"
#include "kmod/common/subsystem.h"

/* The same list is in dkms.conf. */
#if !IS_ENABLED(CONFIG_CGROUPS)
#error "coll.ko needs a kernel with CONFIG_CGROUPS"
#elif !IS_ENABLED(CONFIG_HIGH_RES_TIMERS)
#error "coll.ko needs a kernel with CONFIG_HIGH_RES_TIMERS"
#elif !IS_ENABLED(CONFIG_HOTPLUG_CPU) || !IS_ENABLED(CONFIG_SMP)
#error "coll.ko needs a kernel with CONFIG_SMP and CONFIG_HOTPLUG_CPU"
#elif !IS_ENABLED(CONFIG_INET) || !IS_ENABLED(CONFIG_IPV6) || !IS_ENABLED(CONFIG_NETFILTER)
#error "coll.ko needs a kernel with CONFIG_INET, CONFIG_IPV6 and CONFIG_NETFILTER"
#elif !IS_ENABLED(CONFIG_IO_URING)
#error "coll.ko needs a kernel with CONFIG_IO_URING"
#elif !IS_ENABLED(CONFIG_MMU_NOTIFIER)
#error "coll.ko needs a kernel with CONFIG_MMU_NOTIFIER"
#elif !IS_ENABLED(CONFIG_TRACEPOINTS)
#error "coll.ko needs a kernel with CONFIG_TRACEPOINTS"
#endif

static const struct kcoll_subsystem *const subsystems[] = {
	&kcoll_noise_subsystem,
	&kcoll_watch_subsystem,
	&kcoll_pin_subsystem,
	&kcoll_circuit_subsystem,
};

static void coll_stop(size_t started)
{
	while (started--)
		subsystems[started]->exit();
}

static int __init coll_start(const struct kcoll_subsystem *subsystem)
{
	const int error = subsystem->init();

	if (error)
		pr_err("%s does not start: %d\n", subsystem->name, error);
	return error;
}

static int __init coll_init(void)
{
	size_t i;
	int error;

	for (i = 0; i < ARRAY_SIZE(subsystems); i++) {
		error = coll_start(subsystems[i]);
		if (error)
			goto err_stop;
	}
	error = kcoll_netlink_open(subsystems, ARRAY_SIZE(subsystems));
	if (error)
		goto err_stop;
	error = coll_start(&kcoll_device_subsystem);
	if (error)
		goto err_close;
	return 0;

err_close:
	kcoll_netlink_close();
err_stop:
	coll_stop(i);
	return error;
}

static void __exit coll_exit(void)
{
	kcoll_device_subsystem.exit();
	kcoll_netlink_close();
	coll_stop(ARRAY_SIZE(subsystems));
}

module_init(coll_init);
module_exit(coll_exit);

MODULE_DESCRIPTION("Noise, circuits and collectives in the kernel");
MODULE_AUTHOR("The coll developers");
MODULE_LICENSE("GPL");
MODULE_VERSION(COLL_MODULE_VERSION);
