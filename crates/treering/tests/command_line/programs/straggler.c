/* A stencil of which each rank has a part. The rank that is named as its argument works three times as much in `relax`,
   and the others wait for it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define CELLS 20000

static double cells[CELLS];

__attribute__((noinline)) static void exchange(int rank, int ranks) {
    double edge = cells[0], other;
    MPI_Sendrecv(&edge, 1, MPI_DOUBLE, (rank + 1) % ranks, 0, &other, 1, MPI_DOUBLE, (rank + ranks - 1) % ranks, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    cells[CELLS - 1] = other;
}

__attribute__((noinline)) static void relax(int times) {
    for (int t = 0; t < times; t++)
        for (int i = 1; i < CELLS - 1; i++) cells[i] = (cells[i - 1] + cells[i + 1]) * 0.5;
}

__attribute__((noinline)) static double step(int rank, int ranks, int straggler) {
    relax(rank == straggler ? 60 : 20);
    exchange(rank, ranks);
    double sum = cells[1], all;
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

int main(int argc, char **argv) {
    int rank, ranks, straggler = argc > 1 ? atoi(argv[1]) : -1;
    double all = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < CELLS; i++) cells[i] = rank + i;
    for (int s = 0; s < 60; s++) all = step(rank, ranks, straggler);
    if (rank == 0) printf("%g\n", all);
    MPI_Finalize();
}
