/* What the changed bzip2 runs: texts of several kinds packed in pieces, and unpacked again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bzlib.h"

static unsigned long sum;

void bz_internal_error(int code) {
    fprintf(stderr, "bzip2: %d\n", code);
    exit(1);
}

static void must(int code, int wanted) {
    if (code != wanted) bz_internal_error(code);
}

static void pack(char *text, unsigned length, int level, unsigned step, int small) {
    static char packed[400000], unpacked[400000];
    bz_stream out = {0}, in = {0};
    must(BZ2_bzCompressInit(&out, level, 0, 30), BZ_OK);
    out.next_out = packed, out.avail_out = sizeof packed;
    for (unsigned at = 0; at < length; at += step) {
        out.next_in = text + at, out.avail_in = length - at < step ? length - at : step;
        while (out.avail_in > 0) must(BZ2_bzCompress(&out, BZ_RUN), BZ_RUN_OK);
    }
    must(BZ2_bzCompress(&out, BZ_FINISH), BZ_STREAM_END);
    unsigned size = out.total_out_lo32;
    for (unsigned i = 0; i < size; i++) sum = sum * 31 + (unsigned char)packed[i];
    must(BZ2_bzCompressEnd(&out), BZ_OK);
    must(BZ2_bzDecompressInit(&in, 0, small), BZ_OK);
    in.next_out = unpacked, in.avail_out = sizeof unpacked;
    int code = BZ_OK;
    for (unsigned at = 0; code == BZ_OK && at < size; at += step) {
        in.next_in = packed + at, in.avail_in = size - at < step ? size - at : step;
        while (in.avail_in > 0 && code == BZ_OK) code = BZ2_bzDecompress(&in);
    }
    must(code, BZ_STREAM_END);
    must(BZ2_bzDecompressEnd(&in), BZ_OK);
    if (memcmp(text, unpacked, length)) bz_internal_error(0);
}

int main(void) {
    static char text[200000];
    unsigned length = 0, x = 24301;
    for (int i = 0; i < 900; i++)
        length += sprintf(text + length, "order %d of customer %d: %d pieces at %d.%02d\n", i, i * 7919 % 499, i % 97, i % 31, i % 100);
    pack(text, length, 9, 5000, 0);
    pack(text, length / 2, 1, 777, 1);
    for (unsigned i = 0; i < 20000; i++) text[i] = (x = x * 1664525 + 1013904223) >> 28;
    pack(text, 20000, 5, 20000, 0);
    memset(text, 'a', 60000);
    pack(text, 60000, 1, 4096, 1);
    pack("short", 5, 1, 2, 0);
    printf("%lu\n", sum);
    return 0;
}
