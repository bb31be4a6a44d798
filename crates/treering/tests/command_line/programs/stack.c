// A program whose `aligned` does more or less as its stack lies, which the length of the program's name decides.
#include <stdint.h>

static volatile unsigned long sink;

__attribute__((noinline)) void aligned(void) {
    char local[64];
    __asm__ volatile("" : : "r"(local) : "memory");
    for (unsigned i = 0; i < (((uintptr_t)local >> 4) & 63); i++)
        sink += i;
}

int main(void) {
    aligned();
    return 0;
}
