/* Preloaded into a server under test: its wall clock is ahead of the real one by the seconds in the
 * file that CLOCK_AHEAD names, an int64 in the machine's byte order. Other clocks, and so all timers,
 * stay as they are.
 *
 * libfaketime does the same, but allocates memory while jemalloc, whose start reads the clock,
 * cannot serve it yet: metalmeshd hangs before its main function. Nothing here allocates. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *ahead_s;

__attribute__((constructor)) static void map_file(void) {
    const char *path = getenv("CLOCK_AHEAD");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *page = mmap(NULL, sizeof *ahead_s, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (page != MAP_FAILED)
        ahead_s = page;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (!failed && clock == CLOCK_REALTIME && ahead_s)
        now->tv_sec += *ahead_s;
    return failed;
}
