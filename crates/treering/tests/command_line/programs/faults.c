/* Touches 3000 pages in its first thread and 1000 in another, each for the first time. */
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

static void touch(int pages)
{
    char *memory = mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(memory, (size_t)pages * PAGE, MADV_NOHUGEPAGE);
    for (int page = 0; page < pages; page++)
        memory[(size_t)page * PAGE] = 1;
}

static void *in_thread(void *unused)
{
    touch(1000);
    return unused;
}

int main(void)
{
    pthread_t thread;
    touch(3000);
    pthread_create(&thread, NULL, in_thread, NULL);
    return pthread_join(thread, NULL);
}
