// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A process of a storm, as small as one can be, for the emulator's sake: no C library, one
 * page or two. It looks where it is, then forks so many children as its first argument has
 * letters, which look too. Its exit status is how many of them were elsewhere than on CPU 0
 * alone, where those of its name belong.
 */
#include <asm/unistd.h>
#include <linux/sched.h>
#include <signal.h>

#ifdef __x86_64__
static long ask(long number, long a, long b, long c)
{
	register long d asm("r10") = 0;	/* of wait4: where to say what was used */
	long result;

	asm volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(d)
		     : "rcx", "r11", "memory");
	return result;
}

asm(".globl _start\n_start:\n\tmov %rsp, %rdi\n\tandq $-16, %rsp\n\tcall begin\n");
#else
static long ask(long number, long a, long b, long c)
{
	register long x8 asm("x8") = number, x0 asm("x0") = a, x1 asm("x1") = b;
	register long x2 asm("x2") = c, x3 asm("x3") = 0, x4 asm("x4") = 0;

	asm volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
	return x0;
}

asm(".globl _start\n_start:\n\tmov x0, sp\n\tand sp, x0, #-16\n\tbl begin\n");
#endif

static int elsewhere(void)
{
	unsigned long cpus[16] = { 0 };
	unsigned int cpu = 1;

	ask(__NR_getcpu, (long)&cpu, 0, 0);
	ask(__NR_sched_getaffinity, 0, sizeof(cpus), (long)cpus);
	return cpu != 0 || cpus[0] != 1;
}

/* The child has our memory, and we wait until it is over. */
static void look_as_a_child(volatile int *wrong)
{
	const long pid = ask(__NR_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0);

	if (!pid) {
		*wrong += elsewhere();
		ask(__NR_exit, 0, 0, 0);
	}
	if (pid < 0)
		*wrong += 100;
	else
		ask(__NR_wait4, pid, 0, 0);
}

__attribute__((used, noreturn)) static void begin(long *stack)
{
	const char *letter = stack[0] > 1 ? (const char *)stack[2] : "";
	volatile int wrong = elsewhere();

	for (; *letter; letter++)
		look_as_a_child(&wrong);
	for (;;)
		ask(__NR_exit, wrong, 0, 0);
}
