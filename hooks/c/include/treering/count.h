/* Treering: which part of a program is counted by `treering count --marked`.
 *
 *     #include <treering/count.h>
 *
 *     TREERING_COUNT_START(); solve(); TREERING_COUNT_STOP();
 *
 * From the first mark on, the thread that passed it is counted, up to the second one. Each mark is one
 * instruction that does nothing (a nop of seven bytes, with an operand that no compiler writes), so
 * programs may keep them; nothing needs to be linked. On other processors than x86-64 they are empty.
 */
#ifndef TREERING_COUNT_H
#define TREERING_COUNT_H

#if defined(__x86_64__) && !defined(TREERING_DISABLE)
/* nopl 0x31677274(%rax) and nopl 0x30677274(%rax): "trg1" and "trg0". */
#define TREERING_COUNT_START() __asm__ volatile(".byte 0x0f, 0x1f, 0x80, 0x74, 0x72, 0x67, 0x31" ::: "memory")
#define TREERING_COUNT_STOP() __asm__ volatile(".byte 0x0f, 0x1f, 0x80, 0x74, 0x72, 0x67, 0x30" ::: "memory")
#else
#define TREERING_COUNT_START() ((void)0)
#define TREERING_COUNT_STOP() ((void)0)
#endif

#endif
