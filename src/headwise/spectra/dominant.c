/* One pass over float64 matrices finds the entries that stand out: see dominant.py.
 *
 * A row is read for its maximum and, while it is in the nearest cache, once more for what lies
 * within reach of it. Columns are taken in groups of eight, as many as a line of the cache
 * holds; a matrix in which too many groups are hit is given up as not sparse. Matrices, or
 * parts of one, are shared out over threads; each part gathers its own list of entries.
 */
#include "parallel.h"
#include "weighing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GROUP 8
#define CHUNK (8 * GROUP)
typedef double vd __attribute__((vector_size(8 * GROUP)));
typedef long long vl __attribute__((vector_size(8 * GROUP)));

struct entry {
    int row, column; /* inside the matrix */
    double value;
};

struct list {
    struct entry *entries;
    long count, room, groups;
    int bad; /* an entry that is not a number, a row without a finite maximum, no memory */
};

struct scan {
    const double *values;
    long batch, n, m, parts; /* each matrix is cut into so many parts */
    int softmax;             /* log-weights, or a matrix taken as it is */
    double limit;            /* reach below the maximum, or the least absolute value */
    double most;             /* groups that may be hit in a matrix that is sparse */
    double *top, *total;     /* of each row: largest log-weight, sum of weights relative to it */
    struct list *lists;      /* one for each part */
};

static inline vd load(const double *from) {
    vd x;
    memcpy(&x, from, sizeof x);
    return x;
}

/* Written by lanes: compilers make one instruction of it, which forgets a NaN in a. */
static inline vd larger(vd a, vd b) {
    vd c;
    for (int i = 0; i < GROUP; i++) c[i] = a[i] > b[i] ? a[i] : b[i];
    return c;
}

static inline int any(vl x) {
    return (x[0] | x[1] | x[2] | x[3] | x[4] | x[5] | x[6] | x[7]) != 0;
}

/* The largest of a row; entries that are not numbers are passed over, and found later. */
static double row_maximum(const double *x, long m) {
    vd a = -INFINITY - (vd){0}, b = a, c = a, d = a;
    long j = 0;
    for (; j + 4 * GROUP <= m; j += 4 * GROUP) {
        a = larger(load(x + j), a);
        b = larger(load(x + j + GROUP), b);
        c = larger(load(x + j + 2 * GROUP), c);
        d = larger(load(x + j + 3 * GROUP), d);
    }
    for (; j + GROUP <= m; j += GROUP) a = larger(load(x + j), a);
    a = larger(larger(a, b), larger(c, d));
    double top = -INFINITY;
    for (int i = 0; i < GROUP; i++) top = a[i] > top ? a[i] : top;
    for (; j < m; j++) top = x[j] > top ? x[j] : top;
    return top;
}

/* Whether an entry is to be looked at; what is no number always is. */
static inline vl hits(vd x, double cut, int softmax) {
    return softmax ? ~(x < cut) : ~((x < cut) & (x > -cut));
}

static inline int hit(double x, double cut, int softmax) {
    return softmax ? !(x < cut) : !(x < cut && x > -cut);
}

static int append(struct list *list, long row, long column, double value) {
    if (list->count == list->room) {
        long room = 2 * list->room + 256;
        struct entry *more = realloc(list->entries, room * sizeof *more);
        if (!more) return 0;
        list->entries = more;
        list->room = room;
    }
    list->entries[list->count++] = (struct entry){(int)row, (int)column, value};
    return 1;
}

/* Where a row is, and from which value on its entries are looked at. */
struct row {
    const double *x;
    long number;
    double top, cut;
};

/* Look one by one at the entries first <= j < last of a row: one group. */
static void look(const struct scan *scan, struct list *list, struct row row, long first, long last) {
    int found = 0;
    for (long j = first; j < last; j++) {
        if (!hit(row.x[j], row.cut, scan->softmax)) continue;
        found = 1;
        /* Only this difference is free of rounding when log-weights are as large as 1e9. */
        double value = scan->softmax ? row.x[j] - row.top : row.x[j];
        if (scan->softmax ? value != value : !isfinite(value)) list->bad = 1;
        if (scan->softmax && !(value >= -scan->limit)) continue;
        if (!append(list, row.number, j, value)) list->bad = 1;
    }
    list->groups += found;
}

/* Look at the groups of first <= j < last, all of them whole, that are hit. */
static void look_through(const struct scan *scan, struct list *list, struct row row, long first, long last) {
    for (long j = first; j < last; j += GROUP)
        if (any(hits(load(row.x + j), row.cut, scan->softmax))) look(scan, list, row, j, j + GROUP);
}

static void scan_row(const struct scan *scan, struct list *list, long matrix, long number) {
    long m = scan->m, at = matrix * scan->n + number, j = 0;
    const double *x = scan->values + at * m;
    double top = scan->softmax ? row_maximum(x, m) : 0;
    if (!isfinite(top)) {
        list->bad = 1;
        return;
    }
    struct row row = {x, number, top, scan->softmax ? top - scan->limit : scan->limit};
    for (; j + CHUNK <= m; j += CHUNK) {
        vl found = {0};
        for (int k = 0; k < CHUNK; k += GROUP) {
            __builtin_prefetch(x + m + j + k); /* the next row is wanted next */
            found |= hits(load(x + j + k), row.cut, scan->softmax);
        }
        if (any(found)) look_through(scan, list, row, j, j + CHUNK);
    }
    long whole = m - m % GROUP;
    look_through(scan, list, row, j, whole);
    if (whole < m) look(scan, list, row, whole, m);
    if (scan->softmax) scan->top[at] = top;
}

/* The weights of a part that is sparse; the others would be forgotten. */
static void weigh_rows(const struct scan *scan, struct list *list, long matrix) {
    double *total = scan->total + matrix * scan->n;
    for (long first = 0, last; first < list->count; first = last) {
        int row = list->entries[first].row;
        for (last = first; last < list->count && list->entries[last].row == row;) last++;
        total[row] = weigh(&list->entries[first].value, last - first,
                           sizeof(struct entry) / sizeof(double));
    }
}

static void scan_parts(void *job, struct queue *queue) {
    const struct scan *scan = job;
    for (long unit; (unit = next_unit(queue)) >= 0;) {
        struct list *list = &scan->lists[unit];
        long matrix = unit / scan->parts, part = unit % scan->parts;
        long first = scan->n * part / scan->parts, last = scan->n * (part + 1) / scan->parts;
        for (long row = first; row < last && !list->bad && list->groups <= scan->most; row++)
            scan_row(scan, list, matrix, row);
        if (scan->softmax && !list->bad && list->groups <= scan->most) weigh_rows(scan, list, matrix);
    }
}

/* Which matrices are sparse; empties the lists of those that are not. Entries kept, or -1. */
static long settle_lists(struct scan *scan, unsigned char *sparse) {
    long kept = 0;
    for (long i = 0; i < scan->batch; i++) {
        struct list *own = scan->lists + i * scan->parts;
        double groups = 0;
        for (long p = 0; p < scan->parts; p++) {
            if (own[p].bad) return -1;
            groups += own[p].groups;
        }
        sparse[i] = groups <= scan->most;
        for (long p = 0; p < scan->parts; p++) kept += sparse[i] ? own[p].count : (own[p].count = 0);
    }
    return kept;
}

/* Free what `dominant_find` made. */
void dominant_free(struct scan *scan) {
    for (long unit = 0; scan->lists && unit < scan->batch * scan->parts; unit++)
        free(scan->lists[unit].entries);
    free(scan->lists);
    free(scan);
}

/* Find the entries; `kept` says how many, or -1 if the values are not all numbers or memory
 * ran out. What is returned must go to `dominant_take` or `dominant_free`.
 * sizes: batch, n, m, threads. limits: reach or least absolute value, most groups. */
struct scan *dominant_find(const double *values, const long *sizes, const double *limits,
                           double *top, double *total, unsigned char *sparse, long *kept) {
    struct scan *scan = malloc(sizeof *scan);
    *kept = -1;
    if (!scan) return 0;
    long threads = sizes[3], parts = threads <= sizes[0] ? 1 : (2 * threads + sizes[0] - 1) / sizes[0];
    if (parts > sizes[1]) parts = sizes[1];
    *scan = (struct scan){values, sizes[0], sizes[1], sizes[2], parts, top != 0, limits[0],
                          limits[1], top, total, calloc(sizes[0] * parts, sizeof(struct list))};
    if (!scan->lists) return scan;
    in_parallel(scan_parts, scan, scan->batch * parts, threads);
    *kept = settle_lists(scan, sparse);
    return scan;
}

/* Write the entries row by row, numbered across the batch, and free everything. */
void dominant_take(struct scan *scan, long *rows, long *columns, double *values) {
    for (long unit = 0; unit < scan->batch * scan->parts; unit++) {
        struct list *list = &scan->lists[unit];
        long matrix = unit / scan->parts;
        for (long e = 0; e < list->count; e++) {
            *rows++ = matrix * scan->n + list->entries[e].row;
            *columns++ = matrix * scan->m + list->entries[e].column;
            *values++ = list->entries[e].value;
        }
    }
    dominant_free(scan);
}

/* The same weighing for entries found elsewhere, row by row; the total of each row. */
void dominant_weigh(const long *rows, double *values, long count, double *total) {
    for (long first = 0, last; first < count; first = last) {
        for (last = first; last < count && rows[last] == rows[first];) last++;
        total[rows[first]] = weigh(values + first, last - first, 1);
    }
}
