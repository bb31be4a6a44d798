/* Reads a file in blocks, packs them, and has a library work out their checksums: for fleets with planted faults. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

unsigned checksum(const unsigned char *at, long size);

static unsigned char block[16384];

__attribute__((noinline)) static unsigned pack(long size) {
    unsigned sum = 0;
    for (int round = 0; round < 300; round++)
        for (long i = 1; i < size; i++) {
            block[i] ^= block[i - 1] * 3 + round;
            sum += block[i];
        }
    return sum;
}

__attribute__((noinline)) static long take(int file) { return read(file, block, sizeof block); }

int main(int count, char **words) {
    if (count < 2) return 2;
    int file = open(words[1], O_RDONLY);
    unsigned sum = 0;
    for (long size; (size = take(file)) > 0;) {
        sum += pack(size);
        for (int round = 0; round < 60; round++) sum += checksum(block, size);
    }
    printf("%x\n", sum);
}
