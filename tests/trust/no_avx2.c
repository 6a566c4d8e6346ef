/* A CPU without AVX2, for programs that read /proc/cpuinfo: it is empty.
 * Build: gcc -shared -fPIC no_avx2.c -ldl
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>

static int answer(const char *name, const char *path, int flags, va_list list)
{
    int (*real)(const char *, int, ...);
    *(void **)&real = dlsym(RTLD_NEXT, name);
    return real(strcmp(path, "/proc/cpuinfo") ? path : "/dev/null", flags, va_arg(list, int));
}

#define REPLACE(name)                              \
    int name(const char *path, int flags, ...)     \
    {                                              \
        va_list list;                              \
        va_start(list, flags);                     \
        int file = answer(#name, path, flags, list); \
        va_end(list);                              \
        return file;                               \
    }

REPLACE(open)
REPLACE(open64)
