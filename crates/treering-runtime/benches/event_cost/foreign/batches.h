/* Medians over batches, with probes, as in measure.rs; printed as one line that it reads. */
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

/* A loop that takes as long as the core needs for it. */
static double probe_ns(void) {
    double start = now_ns();
    for (uint64_t turn = 0; turn < 8000; turn++)
        __asm__ volatile("" : : "r,m"(turn) : "memory");
    return now_ns() - start;
}

/* The cost of a turn of `run`: the median, and the batches that a twentieth is below and above. */
static void print_cost(const char *name, void (*run)(uint64_t), int argc, char **argv) {
    int batches = argc > 1 && !strcmp(argv[1], "--quick") ? 60 : 1500;
    uint64_t turns = 16;
    while (batch_ns(run, turns) < 45e3 && turns < 1u << 24)
        turns += turns / 4;
    int most = 4 * batches, made = 0, alone = 0;
    double *costs = (double *)malloc((size_t)most * sizeof *costs);
    double *probes = (double *)malloc((size_t)most * sizeof *probes);
    double *found = (double *)malloc((size_t)most * sizeof *found);
    for (int batch = 0; batch < 20; batch++)
        batch_ns(run, turns);
    do {
        double shortest = 1e300;
        for (int batch = 0; batch < batches; batch++, made++) {
            double before = probe_ns();
            costs[made] = batch_ns(run, turns) / (double)turns;
            double behind = probe_ns();
            probes[made] = before > behind ? before : behind;
        }
        for (int batch = 0; batch < made; batch++)
            shortest = probes[batch] < shortest ? probes[batch] : shortest;
        alone = 0;
        for (int batch = 0; batch < made; batch++)
            if (probes[batch] <= shortest * 1.15)
                found[alone++] = costs[batch];
    } while (alone < batches && made < most);
    if (alone * 10 < batches)
        memcpy(found, costs, (size_t)(alone = made) * sizeof *found);
    qsort(found, (size_t)alone, sizeof *found, in_order);
    printf("%s\t%f\t%f\t%f\n", name, found[alone / 2], found[alone / 20], found[alone * 19 / 20]);
    free(found);
    free(probes);
    free(costs);
}

#endif
