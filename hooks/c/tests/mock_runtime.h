/* A stand-in for the library that writes down which of its functions were called, so that the
 * headers are tested by themselves. */
#ifndef MOCK_RUNTIME_H
#define MOCK_RUNTIME_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The calls since the last mock_reset, a word each. */
const char *mock_calls(void);
void mock_reset(void);
/* Whether ids of tasks are given out; they are at first. */
void mock_decide(int decided);
/* The texts that treering_bench_report writes, the first and every later time. */
void mock_report(const char *first, const char *later);

#ifdef __cplusplus
}
#endif

#define EXPECT_CALLS(expected)                                                                       \
    do {                                                                                             \
        if (strcmp(mock_calls(), expected) != 0) {                                                   \
            fprintf(stderr, "%s:%d: expected %s\n  but called %s\n", __FILE__, __LINE__, expected,   \
                    mock_calls());                                                                   \
            exit(1);                                                                                 \
        }                                                                                            \
        mock_reset();                                                                                \
    } while (0)

#define EXPECT(condition)                                                                            \
    do {                                                                                             \
        if (!(condition)) {                                                                          \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                  \
            exit(1);                                                                                 \
        }                                                                                            \
    } while (0)

#endif
