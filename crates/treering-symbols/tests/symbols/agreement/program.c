/* Inlined functions two deep, a part that is hardly ever run, and calls into libc. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline unsigned mix(unsigned value, unsigned by)
{
    value ^= value << 13;
    value ^= value >> 17;
    return value + by;
}

static inline unsigned fold(const unsigned *values, int count)
{
    unsigned sum = 0;
    for (int i = 0; i < count; i++)
        sum = mix(sum, values[i]);
    return sum;
}

__attribute__((noinline)) static unsigned checked(const unsigned *values, int count)
{
    if (__builtin_expect(count > 1000, 0)) {
        fprintf(stderr, "too many: %d\n", count);
        for (int i = 0; i < count; i++)
            if (values[i] == 0)
                abort();
        exit(3);
    }
    return fold(values, count) + fold(values, count / 2);
}

__attribute__((noinline)) int compare(const void *a, const void *b)
{
    unsigned left = *(const unsigned *)a, right = *(const unsigned *)b;
    return left < right ? -1 : left > right;
}

__attribute__((noinline)) long deep(long n)
{
    return n < 2 ? n : deep(n - 1) + deep(n - 2);
}

int main(int argc, char **argv)
{
    unsigned values[500];
    int count = argc > 1 ? atoi(argv[1]) : 500;
    for (int i = 0; i < 500; i++)
        values[i] = mix((unsigned)i, 7) * (unsigned)strlen(argv[0]);
    qsort(values, 500, sizeof *values, compare);
    printf("%u %ld %f\n", checked(values, count), deep(20), sqrt((double)count));
    return 0;
}
