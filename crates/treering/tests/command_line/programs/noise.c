// A program whose function `chance` does more or less in each run, as a file says that each run changes; `steady` does as
// much as the argument says.
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
    unsigned state = 1;
    FILE *file = fopen("noise.state", "rb");
    if (file) {
        if (fread(&state, sizeof state, 1, file) != 1)
            state = 1;
        fclose(file);
    }
    state = state * 1103515245 + 12345;
    file = fopen("noise.state", "wb");
    if (file) {
        fwrite(&state, sizeof state, 1, file);
        fclose(file);
    }
    chance(1 + (state >> 16));
    steady(argc > 1 ? atoi(argv[1]) : 1000);
    return 0;
}
