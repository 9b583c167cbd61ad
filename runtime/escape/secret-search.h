/* Finds a secret by its beginning, as it is and in base64, also where the beginning alone is known to whoever looks. */
#ifndef SECRET_SEARCH_H
#define SECRET_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Whether there is the mark, and then more of the secret. */
bool has_secret(const char *mark, const void *bytes, size_t length);

/* The same of a file between two offsets, as far as that can be read. */
bool is_secret_in_range(const char *mark, int fd, off_t from, off_t to);

#endif
