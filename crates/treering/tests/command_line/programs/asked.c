/* A function asks the C library for more with FIRST, and one that costs nothing makes another cost more with STEPS. */
#include <stdio.h>
#include <string.h>
#ifndef FIRST
#define FIRST 4900
#endif
#ifndef STEPS
#define STEPS 10
#endif
static char text[5000];
static volatile long state;

__attribute__((noinline)) static unsigned long measured(void) {
    long first = FIRST;
    __asm__ volatile("" : "+r"(first));
    return strlen(text + first);
}

__attribute__((noinline)) static void prepare(void) {
    long steps = STEPS;
    __asm__ volatile("" : "+r"(steps));
    state = steps;
}

__attribute__((noinline)) static unsigned long consume(void) {
    unsigned long sum = 0;
    for (long step = state; step > 0; step--) {
        sum += step;
        __asm__ volatile("" : "+r"(sum));
    }
    return sum;
}

int main(void) {
    unsigned long sum = 0;
    memset(text, 'a', sizeof text - 1);
    prepare();
    for (int turn = 0; turn < 1000; turn++)
        sum += measured() + consume();
    puts(sum > 0 ? "done" : "never");
    return 0;
}
