// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Takes time of CPU 1 as no program can. Written to /sys/module/disturb/parameters/nmi, a number of ns is how
 * long an NMI's handler has that CPU, before the write returns; written to .../steal, so much more is what its
 * hypervisor took, as the kernel knows. For the test machine, where no other NMIs come and no hypervisor says
 * what it takes.
 */
#include <linux/cpumask.h>
#include <linux/kernel_stat.h>
#include <linux/module.h>
#include <linux/timekeeping.h>
#include <asm/apic.h>
#include <asm/irq_vectors.h>
#include <asm/nmi.h>

enum { CPU = 1 };

static DEFINE_MUTEX(one);
static unsigned long length;		/* of the NMI that is asked for; 0: none is */

static int disturb_nmi(unsigned int command, struct pt_regs *registers)
{
	const u64 began = ktime_get_mono_fast_ns();
	const unsigned long ns = READ_ONCE(length);

	if (!ns || raw_smp_processor_id() != CPU)
		return NMI_DONE;
	while (ktime_get_mono_fast_ns() - began < ns)
		cpu_relax();
	smp_store_release(&length, 0);
	return NMI_HANDLED;
}

static int set_nmi(const char *text, const struct kernel_param *parameter)
{
	unsigned long ns;
	int error = kstrtoul(text, 0, &ns);

	if (error || !ns)
		return error ?: -EINVAL;
	mutex_lock(&one);
	smp_store_release(&length, ns);
	apic->send_IPI_mask(cpumask_of(CPU), NMI_VECTOR);
	smp_cond_load_acquire(&length, !VAL);
	mutex_unlock(&one);
	return 0;
}

/* Nobody else adds to it here. */
static int set_steal(const char *text, const struct kernel_param *parameter)
{
	u64 ns, *steal = &kcpustat_cpu(CPU).cpustat[CPUTIME_STEAL];
	int error = kstrtou64(text, 0, &ns);

	if (error)
		return error;
	mutex_lock(&one);
	WRITE_ONCE(*steal, *steal + ns);
	mutex_unlock(&one);
	return 0;
}

static const struct kernel_param_ops nmi_ops = { .set = set_nmi }, steal_ops = { .set = set_steal };

module_param_cb(nmi, &nmi_ops, NULL, 0200);
module_param_cb(steal, &steal_ops, NULL, 0200);

static int __init disturb_init(void)
{
	return register_nmi_handler(NMI_LOCAL, disturb_nmi, 0, "disturb");
}

static void __exit disturb_exit(void)
{
	unregister_nmi_handler(NMI_LOCAL, "disturb");
}

module_init(disturb_init);
module_exit(disturb_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("NMIs and stolen time, by order");
