/* Jumps out of three nested functions, again and again, and enters others afterwards.
 *
 * The functions are not inlined: what runs in one frame cannot be told apart by frames. With ROOMY,
 * the frame of the first one is larger than that of the function entered afterwards. With
 * BY_COMPILER, they are entered and left by what the compiler adds, otherwise by the macros. With
 * WITH_MASK, the jumps restore the signal mask. */
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>

#include <treering/treering.h>

#define KEPT __attribute__((noinline))
#define UNMEASURED __attribute__((no_instrument_function))
#ifdef BY_COMPILER
#define MEASURED() ((void)0)
#else
#define MEASURED() TREERING_FUNCTION()
#endif
#ifdef ROOMY
#define ROOM() volatile char room[1024] = {0}; (void)room
#else
#define ROOM() (void)0
#endif
/* Keeps the compiler from making a call the last act of its function, and so a jump. */
#define NOT_LAST() __asm__ volatile("")

#ifdef WITH_MASK
#define RESTORES_MASK 1
static sigjmp_buf handler;
#define SET() sigsetjmp(handler, 1)
#define JUMP() siglongjmp(handler, 1)
#else
#define RESTORES_MASK 0
static jmp_buf handler;
#define SET() setjmp(handler)
#define JUMP() longjmp(handler, 1)
#endif

/* Blocks or unblocks a signal; tells whether it was blocked. */
UNMEASURED static int block(int how)
{
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(how, &set, &before);
    return sigismember(&before, SIGUSR1);
}

KEPT static void third(void)
{
    MEASURED();
    if (RESTORES_MASK)
        block(SIG_BLOCK);
    JUMP();
}

KEPT static void second(void)
{
    MEASURED();
    third();
    NOT_LAST();
}

KEPT static void first(void)
{
    ROOM();
    MEASURED();
    second();
    NOT_LAST();
}

KEPT static void leaf(void)
{
    MEASURED();
    NOT_LAST();
}

KEPT static void after(void)
{
    MEASURED();
    leaf();
    NOT_LAST();
}

/* Goes on in the function that the jumps lead to. */
KEPT static void many_jumps(int times)
{
    MEASURED();
    for (volatile int i = 0; i < times; ++i) {
        if (SET() == 0)
            first();
        after();
    }
}

/* Leaves the function that the jump leads to, with nothing entered after the jump. */
KEPT static void one_jump(void)
{
    MEASURED();
    if (SET() == 0)
        first();
    if (RESTORES_MASK && block(SIG_UNBLOCK))
        exit(1);
}

KEPT static void several(int times)
{
    MEASURED();
    while (times-- > 0) {
        one_jump();
        after();
    }
}

KEPT static void start(int times)
{
    MEASURED();
    many_jumps(times);
    several(times);
    after();
}

int main(int count, char **arguments)
{
    start(count > 1 ? (int)strtol(arguments[1], NULL, 10) : 100000);
    return 0;
}
