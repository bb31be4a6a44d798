/* What the changed zlib runs: text and noise, compressed at several levels and expanded again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "zlib.h"

static unsigned char input[60000], packed[70000], back[60000];

int main(void) {
    unsigned long state = 1, sum = 0;
    for (size_t i = 0; i < sizeof input; i++) {
        state = (state * 1103515245 + 12345) & 0x7fffffff;
        input[i] = i < 40000 ? "the quick brown fox jumps over "[(state >> 16) % 7 + i % 24] : (unsigned char)(state >> 16);
    }
    static const int levels[] = {1, 3, 6, 9};
    for (int i = 0; i < 4; i++) {
        uLongf length = sizeof packed, all = sizeof back;
        if (compress2(packed, &length, input, sizeof input, levels[i]) != Z_OK) return 1;
        if (uncompress(back, &all, packed, length) != Z_OK || all != sizeof input || memcmp(input, back, all)) return 2;
        sum = sum * 31 + length + crc32(adler32(1, packed, length), packed, length);
    }
    printf("%lu\n", sum);
    return 0;
}
