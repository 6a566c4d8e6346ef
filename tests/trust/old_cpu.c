/* A CPU without AVX-512: what a program reads of the CPU (the instruction CPUID) is changed.
 *
 * Linux lets CPUID fault on CPUs that can (arch_prctl ARCH_SET_CPUID); the handler answers in its
 * place, without AVX-512, AVX-VNNI and AMX, as a Haswell of 2013. What the dynamic linker has
 * read before is changed by GLIBC_TUNABLES: machines.py. Build: gcc -shared -fPIC old_cpu.c -ldl
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define ARCH_SET_CPUID 0x1012

static int (*real_sigaction)(int, const struct sigaction *, struct sigaction *);

static long may_read_cpuid(long may) { return syscall(SYS_arch_prctl, ARCH_SET_CPUID, may); }

static void answer(int number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *at = (const unsigned char *)registers[REG_RIP];
    (void)info;
    if (at[0] != 0x0f || at[1] != 0xa2) { /* a fault of another kind: die of it */
        signal(number, SIG_DFL);
        return;
    }
    unsigned int leaf = registers[REG_RAX], sub = registers[REG_RCX], a, b, c, d;
    may_read_cpuid(1);
    __asm__ volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(leaf), "c"(sub));
    may_read_cpuid(0);
    if (leaf == 1)
        a = 0x306c3; /* Haswell, by its family and model */
    if (leaf == 7 && sub == 0) {
        /* F DQ IFMA PF ER CD BW VL; VBMI VBMI2 VNNI BITALG VPOPCNTDQ; 4VNNIW 4FMAPS VP2INTERSECT,
           AMX, FP16 */
        b &= ~(1u << 16 | 1u << 17 | 1u << 21 | 1u << 26 | 1u << 27 | 1u << 28 | 1u << 30 | 1u << 31);
        c &= ~(1u << 1 | 1u << 6 | 1u << 11 | 1u << 12 | 1u << 14);
        d &= ~(1u << 2 | 1u << 3 | 1u << 8 | 1u << 22 | 1u << 23 | 1u << 24 | 1u << 25);
    }
    if (leaf == 7 && sub == 1)
        a &= ~(1u << 4 | 1u << 5); /* AVX-VNNI, BF16 */
    registers[REG_RAX] = a, registers[REG_RBX] = b, registers[REG_RCX] = c, registers[REG_RDX] = d;
    registers[REG_RIP] += 2;
}

/* Nobody else handles SIGSEGV (Python's faulthandler would). */
int sigaction(int number, const struct sigaction *new, struct sigaction *old)
{
    if (!real_sigaction)
        *(void **)&real_sigaction = dlsym(RTLD_NEXT, "sigaction");
    return real_sigaction(number, number == SIGSEGV ? NULL : new, old);
}

__attribute__((constructor)) static void start(void)
{
    struct sigaction ours;
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = answer;
    ours.sa_flags = SA_SIGINFO | SA_NODEFER;
    *(void **)&real_sigaction = dlsym(RTLD_NEXT, "sigaction");
    if (may_read_cpuid(0) == 0)
        real_sigaction(SIGSEGV, &ours, NULL);
}
