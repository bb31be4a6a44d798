/* Waits that are ended in known ways, a fixed number of times each. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, taken = PTHREAD_COND_INITIALIZER;
static int queue, rounds;
static atomic_int consumer_thread;

__attribute__((noinline)) static void pause_for(long milliseconds) {
    struct timespec time = {0, milliseconds * 1000000};
    nanosleep(&time, 0);
}

/* Ends when a thread sleeps, however late a loaded machine runs it. */
static void until_asleep(int process, int thread) {
    char path[64], state = 'R';
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", process, thread);
    while (state != 'S') {
        pause_for(2);
        FILE *file = fopen(path, "r");
        if (!file || fscanf(file, "%*d (%*[^)]) %c", &state) != 1) exit(1);
        fclose(file);
    }
}

/* Four threads take a lock that each holds while it sleeps. */
__attribute__((noinline)) static void hold_lock(void) {
    pthread_mutex_lock(&lock);
    pause_for(2);
    pthread_mutex_unlock(&lock);
}

static void *contend(void *argument) {
    for (int round = 0; round < rounds; round++) hold_lock();
    return argument;
}

__attribute__((noinline)) static void consume(void) {
    pthread_mutex_lock(&lock);
    while (queue == 0) pthread_cond_wait(&filled, &lock);
    queue = 0;
    pthread_cond_signal(&taken);
    pthread_mutex_unlock(&lock);
}

__attribute__((noinline)) static void produce(void) {
    until_asleep(getpid(), consumer_thread);
    pthread_mutex_lock(&lock);
    while (queue == 1) pthread_cond_wait(&taken, &lock);
    queue = 1;
    pthread_cond_signal(&filled);
    pthread_mutex_unlock(&lock);
}

static void *consumer(void *argument) {
    consumer_thread = gettid();
    for (int round = 0; round < rounds; round++) consume();
    return argument;
}

static void *producer(void *argument) {
    while (!consumer_thread) pause_for(1);
    for (int round = 0; round < rounds; round++) produce();
    return argument;
}

static void run(void *(*routines[])(void *), int count) {
    pthread_t threads[8];
    for (int at = 0; at < count; at++) pthread_create(&threads[at], 0, routines[at], 0);
    for (int at = 0; at < count; at++) pthread_join(threads[at], 0);
}

__attribute__((noinline)) static void receive(int from) {
    char byte;
    if (read(from, &byte, 1) != 1) exit(1);
}

__attribute__((noinline)) static void send_late(int to) {
    until_asleep(getppid(), getppid());
    if (write(to, "x", 1) != 1) exit(1);
}

/* A child sends, and this process receives. */
static void through_pipe(void) {
    int ends[2];
    if (pipe(ends) != 0) exit(1);
    if (fork() == 0) {
        for (int round = 0; round < rounds; round++) send_late(ends[1]);
        _exit(0);
    }
    for (int round = 0; round < rounds; round++) receive(ends[0]);
    wait(0);
}

int main(int count, char **arguments) {
    const char *which = count > 1 ? arguments[1] : "";
    rounds = count > 2 ? atoi(arguments[2]) : 20;
    if (strcmp(which, "convoy") == 0) run((void *(*[])(void *)){contend, contend, contend, contend}, 4);
    if (strcmp(which, "queue") == 0) run((void *(*[])(void *)){producer, consumer}, 2);
    if (strcmp(which, "pipe") == 0) through_pipe();
    if (strcmp(which, "sleep") == 0) for (int round = 0; round < rounds; round++) pause_for(5);
    return 0;
}
