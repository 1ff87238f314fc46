/* Compiled into every library, so that headwise can check what it has loaded. */
#ifndef HEADWISE_SELF_CHECK_H
#define HEADWISE_SELF_CHECK_H

const char *headwise_identity(void) { return HEADWISE_IDENTITY; }

/* Zero for a small b if sums keep their order and are rounded. */
double headwise_residue(double a, double b)
{
    double sum = a + b;
    return sum - a;
}

/* One for two NaN. */
int headwise_differs(double a, double b) { return a != b; }

#endif
