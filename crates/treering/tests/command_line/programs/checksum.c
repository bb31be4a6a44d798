/* The library of archiver.c; with OLD, an earlier version of it, which goes through the bits. */
unsigned checksum(const unsigned char *at, long size) {
    unsigned sum = 1;
    for (long i = 0; i < size; i++) {
#ifdef OLD
        for (int bit = 0; bit < 8; bit++) sum = (sum << 1) ^ (sum >> 31 ? 0x04c11db7 : 0) ^ (at[i] >> bit & 1);
#else
        sum = sum * 31 + at[i];
#endif
    }
    return sum;
}
