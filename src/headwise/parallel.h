/* Units of work shared out over threads: each takes the next one until none is left.
 *
 * Threads are made for the call, about twenty microseconds each: a pool that lives on would
 * not survive a fork. The calling thread works too, so one that cannot be made is not missed.
 */
#ifndef HEADWISE_PARALLEL_H
#define HEADWISE_PARALLEL_H

#include <pthread.h>
#include <stdatomic.h>

#define MOST_THREADS 64

struct queue {
    void (*work)(void *job, struct queue *queue);
    void *job;
    long units;
    atomic_long next;
};

/* The next unit, or -1 when all are taken. */
static inline long next_unit(struct queue *queue) {
    long unit = atomic_fetch_add_explicit(&queue->next, 1, memory_order_relaxed);
    return unit < queue->units ? unit : -1;
}

static void *one_thread(void *queue) {
    struct queue *mine = queue;
    mine->work(mine->job, mine);
    return 0;
}

/* Run `work` on every thread; it takes units from the queue until there are none. */
static void in_parallel(void (*work)(void *, struct queue *), void *job, long units, long threads) {
    struct queue queue = {work, job, units, 0};
    pthread_t helpers[MOST_THREADS];
    long made = 0, wanted = (threads < units ? threads : units) - 1;
    while (made < wanted && made < MOST_THREADS &&
           !pthread_create(&helpers[made], 0, one_thread, &queue))
        made++;
    one_thread(&queue);
    while (made > 0) pthread_join(helpers[--made], 0);
}

#endif
