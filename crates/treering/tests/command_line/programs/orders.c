/* Functions of known order in n: their loops say it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAF __attribute__((noinline))

static unsigned next = 1;

LEAF static unsigned draw(void) {
    next = next * 1103515245u + 12345u;
    return next >> 8;
}

LEAF static int less(unsigned a, unsigned b) { return a < b; }

LEAF static void insertion(unsigned *a, size_t n) {
    for (size_t i = 1; i < n; i++) {
        unsigned x = a[i];
        size_t j = i;
        for (; j > 0 && less(x, a[j - 1]); j--)
            a[j] = a[j - 1];
        a[j] = x;
    }
}

LEAF static void merge(unsigned *a, unsigned *t, size_t m, size_t n) {
    size_t i = 0, j = m, k = 0;
    while (i < m && j < n)
        t[k++] = a[j] < a[i] ? a[j++] : a[i++];
    while (i < m)
        t[k++] = a[i++];
    while (j < n)
        t[k++] = a[j++];
    for (k = 0; k < n; k++)
        a[k] = t[k];
}

LEAF static void msort(unsigned *a, unsigned *t, size_t n) {
    if (n < 2)
        return;
    msort(a, t, n / 2);
    msort(a + n / 2, t, n - n / 2);
    merge(a, t, n / 2, n);
}

LEAF static void sift(unsigned *a, size_t i, size_t n) {
    for (;;) {
        size_t c = 2 * i + 1;
        if (c >= n)
            return;
        if (c + 1 < n && a[c + 1] > a[c])
            c++;
        if (a[c] <= a[i])
            return;
        unsigned x = a[c];
        a[c] = a[i];
        a[i] = x;
        i = c;
    }
}

LEAF static void heap_sort(unsigned *a, size_t n) {
    for (size_t i = n / 2; i-- > 0;)
        sift(a, i, n);
    for (size_t end = n; end-- > 1;) {
        unsigned x = a[0];
        a[0] = a[end];
        a[end] = x;
        sift(a, 0, end);
    }
}

LEAF static size_t bsearch_(unsigned *a, size_t n, unsigned x) {
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (a[middle] < x)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

LEAF static unsigned constant(void) {
    unsigned s = 0;
    for (unsigned i = 0; i < 5000; i++)
        s += i ^ s;
    return s;
}

LEAF static unsigned halvings(unsigned n) {
    unsigned s = 0;
    for (; n > 1; n /= 2)
        s++;
    return s;
}

LEAF static unsigned root(unsigned n) {
    unsigned s = 0;
    for (unsigned i = 0; i * i < n; i++)
        s += i;
    return s;
}

LEAF static unsigned linear(unsigned n) {
    unsigned s = 0;
    for (unsigned i = 0; i < n; i++)
        s += i ^ s;
    return s;
}

LEAF static unsigned rows(unsigned n) {
    unsigned s = 0, columns = (unsigned)sqrt((double)n);
    for (unsigned i = 0; i < n; i++)
        for (unsigned j = 0; j < columns; j++)
            s += i ^ j;
    return s;
}

LEAF static unsigned mixed(unsigned n) {
    unsigned s = 0;
    for (unsigned i = 0; i < n * 200; i++)
        s += i ^ s;
    for (unsigned i = 0; i < n; i++)
        for (unsigned j = 0; j < n; j++)
            s += i ^ j;
    return s;
}

LEAF static unsigned squares_log(unsigned n) {
    unsigned s = 0;
    for (unsigned i = 0; i < n; i++)
        for (unsigned j = 0; j < n; j++)
            for (unsigned k = n; k > 1; k /= 2)
                s += j ^ k;
    return s;
}

LEAF static unsigned cube(unsigned n) {
    unsigned s = 0;
    for (unsigned i = 0; i < n; i++)
        for (unsigned j = 0; j < n; j++)
            for (unsigned k = 0; k < n; k++)
                s += i ^ j ^ k;
    return s;
}

int main(int words, char **word) {
    unsigned n = words > 1 ? (unsigned)atoi(word[1]) : 1;
    unsigned *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b), *t = malloc(n * sizeof *t);
    volatile unsigned s = 0;
    for (unsigned i = 0; i < n; i++)
        a[i] = b[i] = t[i] = draw();
    insertion(t, n);
    for (unsigned i = 0; i < n; i++)
        s += bsearch_(t, n, a[i]);
    msort(b, t, n);
    heap_sort(a, n);
    s += constant() + halvings(n) + root(n) + linear(n) + rows(n) + mixed(n);
    s += squares_log(n / 4) + cube(n / 4);
    return 0;
}
