/* Absolute paths, by name alone: nothing is looked up, no link followed. */
#ifndef PATHS_H
#define PATHS_H

#include <stdbool.h>

/* Whether `path` is `top` or lies below it. */
bool is_within(const char *path, const char *top);

#endif
