/* Small files, read or written in one go; a signal or a short write does not show. */
#ifndef FILES_H
#define FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Leaves errno as it was. */
void close_keeping_errno(int fd);

/* For a pipe, or a file that is written from its beginning or appended to. */
#define AT_END (-1)

/* Writes at a position, or AT_END. False with errno set when not all of it could be written. */
bool write_all(int fd, const char *bytes, size_t length, off_t at);

/* At most `size - 1` bytes of the file at `path` below `dir_fd`, as a string. False with errno set when it cannot be read. */
bool read_small_file(int dir_fd, const char *path, char *buffer, size_t size);

/* Writes into a file that is there, at `path` below `dir_fd`. False with errno set. */
bool write_file(int dir_fd, const char *path, const char *content);

/* Makes an empty one that was not there, for all to read. False with errno set. */
bool make_file(const char *path);

#endif
