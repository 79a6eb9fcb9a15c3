/* Counts the calls that change files, and ends or interrupts the process at one of them; loaded before libc's.

   SQLite and the interpreter make these calls in C, where no Python code could stand between two of them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static long passed = -1, last = -1; /* -1: nothing is counted */
static int sent = 0, torn = 0;

void calls_arm(long at, int number, int tear) { passed = 0, last = at, sent = number, torn = tear; }
long calls_passed(void) { return passed; }
void calls_disarm(void) { passed = -1; }

/* Whether this call is the one: the caller may then tear it. */
static int cross(int can_tear) {
    if (passed < 0 || passed++ != last) return 0;
    if (torn && can_tear) return 1;
    kill(getpid(), sent);
    return 0;
}

#define REAL(name) static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define WRITES (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)
#define OPENED \
    mode_t mode = 0; \
    if (flags & (O_CREAT | O_TMPFILE)) { va_list more; va_start(more, flags); mode = va_arg(more, mode_t); va_end(more); } \
    if (flags & WRITES) cross(0);

int open(const char *path, int flags, ...) { REAL(open); OPENED return real(path, flags, mode); }
int open64(const char *path, int flags, ...) { REAL(open64); OPENED return real(path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { REAL(openat); OPENED return real(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { REAL(openat64); OPENED return real(at, path, flags, mode); }

#define TORN(...) if (fd > 2 && cross(1)) { ssize_t half = __VA_ARGS__; (void)half; kill(getpid(), sent); }
ssize_t write(int fd, const void *from, size_t n) { REAL(write); TORN(real(fd, from, n / 2)) return real(fd, from, n); }
ssize_t pwrite(int fd, const void *from, size_t n, off_t at) {
    REAL(pwrite); TORN(real(fd, from, n / 2, at)) return real(fd, from, n, at);
}
ssize_t pwrite64(int fd, const void *from, size_t n, off64_t at) {
    REAL(pwrite64); TORN(real(fd, from, n / 2, at)) return real(fd, from, n, at);
}

int fsync(int fd) { REAL(fsync); cross(0); return real(fd); }
int fdatasync(int fd) { REAL(fdatasync); cross(0); return real(fd); }
int ftruncate(int fd, off_t n) { REAL(ftruncate); cross(0); return real(fd, n); }
int ftruncate64(int fd, off64_t n) { REAL(ftruncate64); cross(0); return real(fd, n); }
int flock(int fd, int how) { REAL(flock); cross(0); return real(fd, how); }
int rename(const char *from, const char *to) { REAL(rename); cross(0); return real(from, to); }
int renameat(int a, const char *from, int b, const char *to) { REAL(renameat); cross(0); return real(a, from, b, to); }
int unlink(const char *path) { REAL(unlink); cross(0); return real(path); }
int unlinkat(int at, const char *path, int flags) { REAL(unlinkat); cross(0); return real(at, path, flags); }
int mkdir(const char *path, mode_t mode) { REAL(mkdir); cross(0); return real(path, mode); }
int rmdir(const char *path) { REAL(rmdir); cross(0); return real(path); }

#define LOCKED \
    va_list more; va_start(more, command); void *value = va_arg(more, void *); va_end(more); \
    if (command == F_SETLK || command == F_SETLKW) cross(0);
int fcntl(int fd, int command, ...) { REAL(fcntl); LOCKED return real(fd, command, value); }
int fcntl64(int fd, int command, ...) { REAL(fcntl64); LOCKED return real(fd, command, value); }
