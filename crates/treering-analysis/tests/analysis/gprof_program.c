/* A program for gprof with everything that its propagation has a rule for: a function with
   several callers that call it unequally often, one that calls itself, two that call each other,
   and a callee of the cycle that is called from outside too. */
#include <stdlib.h>

volatile unsigned long sink;

__attribute__((noinline)) void work(long rounds) {
    for (long i = 0; i < rounds * 1000; i++) sink += (unsigned long)i * 7;
}

__attribute__((noinline)) void leaf(void) { work(500); for (long i = 0; i < 500000; i++) sink ^= (unsigned long)i; }

__attribute__((noinline)) void seldom(void) {
    for (int i = 0; i < 100; i++) leaf();
    for (long i = 0; i < 30000000; i++) sink += 3;
}

__attribute__((noinline)) void often(void) {
    for (int i = 0; i < 300; i++) leaf();
    for (long i = 0; i < 10000000; i++) sink += 5;
}

__attribute__((noinline)) void again(int depth) {
    for (long i = 0; i < 400000; i++) sink += 11;
    if (depth > 0) again(depth - 1);
}

__attribute__((noinline)) void odd(int depth);

__attribute__((noinline)) void even(int depth) {
    for (long i = 0; i < 1000000; i++) sink += 13;
    if (depth % 5 == 0) leaf();
    if (depth > 0) odd(depth - 1);
}

__attribute__((noinline)) void odd(int depth) {
    for (long i = 0; i < 2000000; i++) sink += 17;
    if (depth > 0) even(depth - 1);
}

int main(void) {
    seldom();
    often();
    again(60);
    for (int i = 0; i < 3; i++) even(20);
    odd(7);
    return 0;
}
