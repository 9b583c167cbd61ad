/* Sockets of the host: a connection, or -1 with errno. */
#ifndef SOCKETS_H
#define SOCKETS_H

#include "attempt.h"

int call_abstract(const char *name);
int call_loopback(int port);
int call_path(const char *path);

/* Reads an answer until its end, or until nothing more comes for seconds. The number of its bytes. */
size_t read_until_end(int fd, char *answer, size_t size);

#endif
