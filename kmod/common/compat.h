/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The code is written for the newest kernel; here it is taught to the older
 * ones, from 6.1. The only file that asks for the version.
 */
#ifndef COLL_KMOD_COMPAT_H
#define COLL_KMOD_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/sched.h>
#include <linux/version.h>
#include <net/genetlink.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
#include <linux/io_uring/cmd.h>
#else
#include <linux/io_uring.h>
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#define hrtimer_setup coll_hrtimer_setup	/* some 6.12 stable may bring its own */
static inline void coll_hrtimer_setup(struct hrtimer *timer,
				      enum hrtimer_restart (*function)(struct hrtimer *),
				      clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

/* ---- floating point: kernel_fpu_begin(), kernel_fpu_end() ---- */

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#include <linux/fpu.h>
#elif defined(CONFIG_X86)
#include <asm/fpu/api.h>
#elif defined(CONFIG_ARM64)
#include <asm/neon.h>
#define kernel_fpu_begin kernel_neon_begin
#define kernel_fpu_end kernel_neon_end
#else
#error "coll.ko: no floating point in kernels before 6.10 of this architecture"
#endif

/* ---- pinned pages ---- */

/*
 * Before 6.2, a page that is pinned to be read only stays the zero page or the file's, and what
 * the program writes later goes to another.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
#define COLL_PIN_TO_READ 0
#else
#define COLL_PIN_TO_READ (FOLL_WRITE | FOLL_FORCE)
#endif

/* ---- work queues ---- */

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
#define coll_system_wq system_percpu_wq
#define coll_unbound_wq system_dfl_wq
#else
#define coll_system_wq system_wq
#define coll_unbound_wq system_unbound_wq
#endif

/* Tasks that look like a program's, but never return to user space. */
#ifdef PF_USER_WORKER
#define COLL_PF_WORKER (PF_IO_WORKER | PF_USER_WORKER)
#else
#define COLL_PF_WORKER PF_IO_WORKER
#endif

/*
 * Threads of a program that work in the kernel: where vhost has them. From 6.10 on they may be
 * killed before they are stopped.
 */
#if IS_ENABLED(CONFIG_VHOST_TASK) && LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#include <linux/sched/vhost_task.h>
#define COLL_USER_WORKERS 1
#else
#define COLL_USER_WORKERS 0
#endif

/* What probes on sched_process_exit are given besides their data. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
#define COLL_PROCESS_EXIT_ARGS struct task_struct *task, bool group_dead
#else
#define COLL_PROCESS_EXIT_ARGS struct task_struct *task
#endif

/* For a multicast group: another name of a command's flag, before 6.7. */
#ifndef GENL_MCAST_CAP_NET_ADMIN
#define GENL_MCAST_CAP_NET_ADMIN GENL_UNS_ADMIN_PERM
#endif

/* The attributes of a dump's request. */
static inline struct nlattr **coll_dump_attrs(struct netlink_callback *cb)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
	return genl_dumpit_info(cb)->info.attrs;
#else
	return genl_dumpit_info(cb)->attrs;
#endif
}

/* ---- commands over io_uring ---- */

/* A macro since it takes the type. */
#ifdef io_uring_sqe_cmd
#define coll_uring_sqe_command(command, type) io_uring_sqe_cmd((command)->sqe, type)
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
#define coll_uring_sqe_command(command, type) ((const type *)io_uring_sqe_cmd((command)->sqe))
#else
#define coll_uring_sqe_command(command, type) ((const type *)(command)->cmd)
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
#define COLL_TASK_WORK_ARGUMENTS struct io_tw_req request, io_tw_token_t token
#define COLL_TASK_WORK_COMMAND io_uring_cmd_from_tw(request)
#define COLL_TASK_WORK_FLAGS IO_URING_CMD_TASK_WORK_ISSUE_FLAGS
#else
#define COLL_TASK_WORK_ARGUMENTS struct io_uring_cmd *task_command, unsigned int task_flags
#define COLL_TASK_WORK_COMMAND task_command
#define COLL_TASK_WORK_FLAGS task_flags
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
#define coll_uring_cmd_done(command, result, flags) io_uring_cmd_done(command, result, flags)
#else
#define coll_uring_cmd_done(command, result, flags) io_uring_cmd_done(command, result, 0, flags)
#endif

/*
 * A command of several completions, since 6.18: one that returns no error is taken for one that
 * goes on for ever, and its ring waits for it at its end.
 */
#ifdef IORING_URING_CMD_MULTISHOT
#define coll_uring_is_multishot(command) ((command)->flags & IORING_URING_CMD_MULTISHOT)
#else
#define coll_uring_is_multishot(command) false
#endif

/*
 * Before 6.7 nobody cancels a command: the file's flush ends what is under way. exec() comes before
 * that, and waits for it, whatever signal comes.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
#define COLL_URING_CANCELABLE 1
#define coll_uring_cmd_mark_cancelable(command, flags) io_uring_cmd_mark_cancelable(command, flags)
#define coll_uring_is_cancel(flags) ((flags) & IO_URING_F_CANCEL)
#define coll_uring_execs(command) false
#else
#include <linux/io_uring_types.h>
#define COLL_URING_CANCELABLE 0
/* Whether the task that submitted it, which it holds, is in exec(). */
#define coll_uring_execs(command) (cmd_to_io_kiocb(command)->task->in_execve)
#define coll_uring_cmd_mark_cancelable(command, flags) do { } while (0)
#define coll_uring_is_cancel(flags) false
#endif

#endif
