/*
 * The relay: accepts connections and passes each, byte by byte and both ways, to a new connection to a Unix socket.
 *
 * One loop over epoll. A connection has two flows, one each way. A flow that cannot write keeps what it has read and reads no
 * more, so a slow receiver slows its sender down. The end of one flow is passed on and leaves the other open. A receiver
 * that has gone ends its flow alone: an answer that it sent before is still delivered. Any other failure ends the
 * connection.
 *
 * Bytes are copied, not spliced: a pipe for each flow would take three times the descriptors, and copying is far faster than
 * what is behind the socket.
 */
#ifndef RELAY_H
#define RELAY_H

#include <stdbool.h>
#include <stddef.h>

/* Connections at a time, unless the limit for descriptors allows fewer. Further ones are closed. */
#define MAX_CONNECTIONS 2048

/* The system calls of relay_run. */
extern const unsigned int RELAY_CALLS[];
extern const size_t RELAY_CALL_COUNT;

/* Takes all that relay_run needs. `name`: the socket, in the working directory. False with errno. */
bool relay_prepare(const int *listeners, int count, const char *name);

/* Returns only if the kernel tells no more events. */
void relay_run(void);

#endif
