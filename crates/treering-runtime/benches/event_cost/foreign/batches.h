/* Medians over batches, as in measure.rs; printed as one line that it reads. */
#ifndef TREERING_BENCH_BATCHES_H
#define TREERING_BENCH_BATCHES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int in_order(const void *left, const void *right) {
    double first = *(const double *)left, second = *(const double *)right;
    return (first > second) - (first < second);
}

static double batch_ns(void (*run)(uint64_t), uint64_t turns) {
    double start = now_ns();
    run(turns);
    return now_ns() - start;
}

/* The cost of a turn of `run`: the median, and the batches that a twentieth is below and above. */
static void print_cost(const char *name, void (*run)(uint64_t), int argc, char **argv) {
    int batches = argc > 1 && !strcmp(argv[1], "--quick") ? 60 : 1500;
    uint64_t turns = 16;
    while (batch_ns(run, turns) < 45e3 && turns < 1u << 24)
        turns += turns / 4;
    double *found = (double *)malloc((size_t)batches * sizeof *found);
    for (int batch = -20; batch < batches; batch++) {
        double taken = batch_ns(run, turns);
        if (batch >= 0)
            found[batch] = taken / (double)turns;
    }
    qsort(found, (size_t)batches, sizeof *found, in_order);
    printf("%s\t%f\t%f\t%f\n", name, found[batches / 2], found[batches / 20], found[batches * 19 / 20]);
    free(found);
}

#endif
