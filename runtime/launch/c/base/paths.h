/* Compares absolute paths as text. Symlinks are not resolved. */
#ifndef PATHS_H
#define PATHS_H

#include <stdbool.h>

/* Whether `path` is `top` or lies below it. */
bool is_within(const char *path, const char *top);

#endif
