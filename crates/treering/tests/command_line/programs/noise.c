// A program whose function `chance` does more or less in each run, and `steady` as much as its argument says.
#include <stdio.h>
#include <stdlib.h>

static volatile unsigned long sink;

__attribute__((noinline)) void chance(unsigned rounds) {
    for (unsigned i = 0; i < rounds; i++)
        sink += i;
}

__attribute__((noinline)) void steady(unsigned rounds) {
    for (unsigned i = 0; i < rounds; i++)
        sink ^= i * 7;
}

int main(int argc, char **argv) {
    unsigned char bytes[2] = {0, 0};
    FILE *random = fopen("/dev/urandom", "rb");
    if (random && fread(bytes, 1, 2, random) == 2)
        chance(1 + bytes[0] + 256 * bytes[1]);
    steady(argc > 1 ? atoi(argv[1]) : 1000);
    return 0;
}
