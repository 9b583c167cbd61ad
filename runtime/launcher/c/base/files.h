/* Small files, read or written in one go; a signal or a short write does not show. */
#ifndef FILES_H
#define FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* False with errno set when not all of it could be written. */
bool write_all(int fd, const char *bytes, size_t length);

/* The same at a position, which for a file that is appended to, or a pipe, is not possible. */
bool write_at(int fd, const char *bytes, size_t length, off_t at);

/* At most `size - 1` bytes of the file at `path` below `dir_fd`, as a string; -1 with errno set when it cannot be read. */
ssize_t read_small_file(int dir_fd, const char *path, char *buffer, size_t size);

/* Writes into a file that is there, at `path` below `dir_fd`. False with errno set. */
bool write_file(int dir_fd, const char *path, const char *content);

/* Makes an empty one that was not there, for all to read. False with errno set. */
bool make_file(int dir_fd, const char *path);

#endif
