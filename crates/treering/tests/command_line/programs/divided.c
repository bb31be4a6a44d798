/* A function that gcc -O2 divides: the test stays in `visit`, the rest becomes `visit.part.0`.
 *
 * `divided_main.c` calls it. Known counts, of `divided ROUNDS`: `visit` is called ROUNDS times by `main`, which is not
 * optimised with this file; as often by itself; and as often by `pass_on`, into which the test is inlined, so that it
 * enters only the rest. The argument is 1 in a quarter of the calls by `main`: the test then leaves.
 */
int table[64];

void touch(int value);

/* The same function under another name: a call of it is not inlined. */
void visit_again(int n) __asm__("visit");

void visit(int n)
{
    if (n == 1)
        return;
    for (int i = 0; i < n; i++) {
        touch(table[i & 63]);
        table[(i * 7) & 63] += n;
        touch(i);
    }
    for (int i = 0; i < n; i++) {
        touch(table[i & 63] + 1);
        table[(i * 3) & 63] ^= n;
    }
    if (n == 3)
        visit_again(2);
}

void pass_on(int n)
{
    touch(n);
    visit(n);
}
