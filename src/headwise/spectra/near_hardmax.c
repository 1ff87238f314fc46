/* Count the singular values of nearly one-hot matrices from their few entries.
 *
 * The method and its proof are in near_hardmax.py, which does the same with arrays and is the
 * judge of this code. Here each matrix is counted by one thread, from its entries row by row
 * (near_hardmax_matrix.h). Blocks and components are found by joining the columns that share a
 * row (near_hardmax_joining.h) and factored one by one (near_hardmax_blocks.h). A matrix with a
 * block too large for these plain factorisations is left to the arrays.
 */
#include "near_hardmax_blocks.h"
#include "parallel.h"

/* Count the blocks of B_U by themselves. */
static enum fate count_blocks(struct desk *d) {
    double work = 0;
    int large = 0;
    for (long i = 0; i < d->blocks.count; i++) {
        long c = d->blocks.tops[i];
        struct block block = measure(d, c);
        d->low[c] = d->high[c] = 0;
        work += work_of(block);
        if (work > d->batch->constants->most_work) return TOO_DENSE;
        if (!fits(block)) large = 1;
        else if (!large) count_block(d, block, INFINITY, block.slack, 0, &d->low[c], &d->high[c]);
    }
    return large ? TOO_LARGE : COUNTED;
}

/* Is the count of any block open? */
static int any_open(const struct desk *d) {
    for (long i = 0; i < d->blocks.count; i++)
        if (d->low[d->blocks.tops[i]] != d->high[d->blocks.tops[i]]) return 1;
    return 0;
}

/* Mark the components that hold an open block. */
static void mark_open(struct desk *d) {
    memset(d->open, 0, d->batch->m);
    for (long i = 0; i < d->blocks.count; i++) {
        long c = d->blocks.tops[i];
        if (d->low[c] != d->high[c]) d->open[d->components.root[c]] = 1;
    }
}

/* Let the count of a component stand for those of all its blocks. */
static void replace(struct desk *d, long root, long low, long high) {
    for (long c = d->first_column[root]; c >= 0; c = d->next_column[c]) {
        if (d->energy[c] > 0 || d->blocks.root[c] != c) continue;
        d->low[c] = low;
        d->high[c] = high;
        low = high = 0; /* the first block carries it */
    }
}

/* Where blocks left a doubt, count again with the strong ties of M in full. */
static enum fate settle(struct desk *d, double strong) {
    find_slack(d, strong);
    join(d, &d->components, strong);
    mark_open(d);
    for (long i = 0; i < d->components.count; i++) {
        long root = d->components.tops[i];
        if (!d->open[root]) continue;
        struct block block = measure(d, root);
        if (work_of(block) > d->batch->constants->most_work) return TOO_DENSE;
        if (!fits(block)) return TOO_LARGE;
        long low, high;
        enum fate fate = count_block(d, block, strong, block.slack, block.slack, &low, &high);
        if (fate != COUNTED) return fate;
        replace(d, root, low, high);
    }
    return COUNTED;
}

static enum fate count_matrix(struct desk *d, long *low, long *high) {
    if (d->strange || !(d->epsilon > 1 / LARGEST_VALUE)) return TOO_LARGE;
    *low = *high = find_anchors(d);
    if (drop_anchored_rows(d) == 0) return COUNTED;
    find_slack(d, INFINITY);
    join(d, &d->blocks, INFINITY);
    enum fate fate = count_blocks(d);
    for (int s = 0; s < 2 && fate == COUNTED && any_open(d); s++)
        fate = settle(d, d->batch->constants->strong_ties[s]);
    for (long i = 0; i < d->blocks.count && fate == COUNTED; i++) {
        *low += d->low[d->blocks.tops[i]];
        *high += d->high[d->blocks.tops[i]];
    }
    return fate;
}

static void count_some(void *job, struct queue *queue) {
    const struct batch *b = job;
    struct desk desk;
    desk.batch = b;
    char *memory = make_desk(&desk);
    if (!memory) return; /* what nobody counts is left to the arrays */
    for (long i; (i = next_unit(queue)) >= 0;) {
        take_up(&desk, i);
        b->fate[i] = count_matrix(&desk, &b->low[i], &b->high[i]);
    }
    free(memory);
}

static long most_between(const long *start, long count) {
    long most = 0;
    for (long i = 0; i < count; i++) most = start[i + 1] - start[i] > most ? start[i + 1] - start[i] : most;
    return most;
}

/* Counts of every matrix of a batch; sizes: batch, n, m, threads. */
void near_hardmax_count(const long *rows, const long *columns, const double *values, const long *start,
                        const long *sizes, const double *epsilon, double *delta,
                        const struct constants *constants, long *low, long *high, unsigned char *fate) {
    struct batch batch = {
        .lists = {rows, columns, values, start}, .take = take_lists,
        .n = sizes[1], .m = sizes[2], .most_entries = most_between(start, sizes[0]) + 1,
        .epsilon = epsilon, .delta = delta, .constants = constants,
        .low = low, .high = high, .fate = fate};
    memset(fate, TOO_LARGE, sizes[0]);
    in_parallel(count_some, &batch, sizes[0], sizes[3]);
}

/* The same from what a device sent; sizes: batch, n, m, threads, room, softmax. */
void near_hardmax_count_packed(const long *numbers, const unsigned char *sparse, const long *sizes,
                               const double *epsilon, double *delta, const struct constants *constants,
                               long *low, long *high, unsigned char *fate) {
    long rows = sizes[0] * sizes[1], room = sizes[4];
    const long *table = numbers + 2 * sizes[0], *columns = table + 2 * rows;
    const double *values = (const double *)(columns + sizes[0] * room);
    struct batch batch = {
        .packed = {table, columns, values, sparse, room, sizes[5]}, .take = take_packed,
        .n = sizes[1], .m = sizes[2], .most_entries = room + sizes[1] + 1,
        .epsilon = epsilon, .delta = delta, .constants = constants,
        .low = low, .high = high, .fate = fate};
    memset(fate, TOO_LARGE, sizes[0]);
    in_parallel(count_some, &batch, sizes[0], sizes[3]);
}
