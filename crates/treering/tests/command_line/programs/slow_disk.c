/* Preloaded, makes each read of a file wait, as a slow disk would. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

ssize_t read(int file, void *to, size_t size) {
    static ssize_t (*next)(int, void *, size_t);
    if (!next) next = (ssize_t (*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
    struct stat found;
    if (fstat(file, &found) == 0 && S_ISREG(found.st_mode)) nanosleep(&(struct timespec){0, 10000000}, NULL);
    return next(file, to, size);
}
