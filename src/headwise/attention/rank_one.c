/* Attention by rank-one heads in float32, heads last: see rank_one.py for the formulas.
 *
 * Sixteen heads at a time, so that one vector holds a number of each and the sums over keys
 * stay in registers. Arrays are (sequences, tokens, heads); a call works on the sequences
 * first <= s < last, so callers may split the work over threads.
 */
#include <stdlib.h>
#include <string.h>

#define LANES 16
typedef float vf __attribute__((vector_size(4 * LANES)));
typedef int vi __attribute__((vector_size(4 * LANES)));

static inline vf fill(float x) { return x - (vf){0}; }

static inline vf choose(vi where, vf yes, vf no) {
    return (vf)(((vi)yes & where) | ((vi)no & ~where));
}

/* e^x for x <= 0 to about one unit in the last place: x = n ln 2 + r, Taylor in r. */
static inline vf exponential(vf x) {
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to a whole number */
    x = choose(x < fill(-87.0f), fill(-87.0f), x);
    vf shifted = x * 1.44269504f + magic;
    vf n = shifted - magic;
    vf r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    vf p = fill(1.0f / 720);
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    return (vf)((vi)p + ((vi)shifted << 23));
}

static inline vf load(const float *from, long lanes) {
    vf x = {0};
    if (lanes >= LANES) memcpy(&x, from, sizeof x);
    else memcpy(&x, from, sizeof(float) * lanes);
    return x;
}

static inline void store(float *to, vf x, long lanes) {
    if (lanes >= LANES) memcpy(to, &x, sizeof x);
    else memcpy(to, &x, sizeof(float) * lanes);
}

/* Copy one column of keys or values together; returns its largest and smallest entry. */
static void gather(vf *to, const float *from, long m, long heads, long lanes, vf *high, vf *low) {
    *high = *low = load(from, lanes);
    for (long j = 0; j < m; j++) {
        to[j] = load(from + j * heads, lanes);
        *high = choose(to[j] > *high, to[j], *high);
        *low = choose(to[j] < *low, to[j], *low);
    }
}

/* The key with the largest logit: the highest or the lowest, as the query's sign says. */
static inline vf best_key(vf q, vf high, vf low) { return choose(q > fill(0.0f), high, low); }

int rank_one_forward(const float *q, const float *k, const float *v, float *mixed, float *total,
                     float *slope, long n, long m, long heads, long first, long last) {
    vf *keys = aligned_alloc(sizeof(vf), 2 * m * sizeof(vf));
    if (!keys) return 1;
    vf *values = keys + m, high, low, unused_high, unused_low;
    for (long s = first; s < last; s++)
        for (long h = 0; h < heads; h += LANES) {
            long lanes = heads - h;
            gather(keys, k + s * m * heads + h, m, heads, lanes, &high, &low);
            gather(values, v + s * m * heads + h, m, heads, lanes, &unused_high, &unused_low);
            for (long i = 0; i < n; i++) {
                long at = (s * n + i) * heads + h;
                vf qi = load(q + at, lanes), best = best_key(qi, high, low);
                vf sum = {0}, sum_v = {0}, sum_k = {0}, sum_kv = {0};
                for (long j = 0; j < m; j++) {
                    vf behind = keys[j] - best;
                    vf w = exponential(qi * behind), wk = w * behind;
                    sum += w;
                    sum_v += w * values[j];
                    sum_k += wk;
                    sum_kv += wk * values[j];
                }
                vf out = sum_v / sum;
                store(mixed + at, out, lanes);
                store(total + at, sum, lanes);
                store(slope + at, (sum_kv - out * sum_k) / sum, lanes);
            }
        }
    free(keys);
    return 0;
}

int rank_one_backward(const float *g, const float *q, const float *k, const float *v,
                      const float *mixed, const float *total, float *by_keys, float *by_values,
                      long n, long m, long heads, long first, long last) {
    vf *keys = aligned_alloc(sizeof(vf), 4 * m * sizeof(vf));
    if (!keys) return 1;
    vf *values = keys + m, *dk = keys + 2 * m, *dv = keys + 3 * m;
    vf high, low, unused_high, unused_low;
    for (long s = first; s < last; s++)
        for (long h = 0; h < heads; h += LANES) {
            long lanes = heads - h, base = s * m * heads + h;
            gather(keys, k + base, m, heads, lanes, &high, &low);
            gather(values, v + base, m, heads, lanes, &unused_high, &unused_low);
            memset(dk, 0, 2 * m * sizeof(vf));
            for (long i = 0; i < n; i++) {
                long at = (s * n + i) * heads + h;
                vf qi = load(q + at, lanes), best = best_key(qi, high, low);
                vf sum = load(total + at, lanes);
                vf gi = load(g + at, lanes) / choose(sum == 0.0f, fill(1.0f), sum);
                vf gq = gi * qi, gqo = gq * load(mixed + at, lanes);
                for (long j = 0; j < m; j++) {
                    vf w = exponential(qi * (keys[j] - best));
                    dv[j] += w * gi;
                    dk[j] += w * (gq * values[j] - gqo);
                }
            }
            for (long j = 0; j < m; j++) {
                store(by_keys + base + j * heads, dk[j], lanes);
                store(by_values + base + j * heads, dv[j], lanes);
            }
        }
    free(keys);
    return 0;
}
