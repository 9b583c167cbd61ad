/*
 * The forwarder: the process that serves the way out of a sandbox (sandbox/egress.h).
 *
 * It passes each connection to the port in the sandbox to a new connection to the Unix socket of the service, byte by byte
 * (relay.h). The service decides what may go on from there. If the service is away, connections are closed; it listens at
 * the same path again after a restart.
 *
 * A child of the launcher, beside the sandbox: outside its pid namespace, so that the task neither sees nor ends it; in its
 * cgroup, so that buffers of its connections are memory of the task. One process more than the limit of the task allows for
 * it. It ends with the task, and with the launcher.
 *
 * Confined before the task starts: in the network namespace of the sandbox, with the directory of the socket as its root,
 * without capabilities, with the system calls that it needs. It stays the user of the service, so that no task may signal
 * it, and the socket needs no mode for others.
 */
#ifndef FORWARDER_H
#define FORWARDER_H

#include <sys/types.h>

#include "base/arguments.h"
#include "base/fault.h"
#include "sandbox/cgroup.h"

/* Forks it. The child gets `channel_fd`, for egress_hand_over. */
struct fault forwarder_start(pid_t *pid, int *channel_fd, const struct arguments *arguments, const struct cgroup *cgroup);

#endif
