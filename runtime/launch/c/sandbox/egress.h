/*
 * The way out of a sandbox whose network has rules: connections to a port of its loopback go to a Unix socket of the service.
 *
 * The child of the launcher listens in its network namespace while it has its rights, hands the listeners to the forwarder
 * (supervise/forwarder.h) and waits until that has given up its own rights. So the program finds the port open, and a task
 * without a confined forwarder does not start.
 *
 * Both talk through a pair of sockets: one message to the forwarder, with the descriptors, and a fault as its answer.
 */
#ifndef EGRESS_H
#define EGRESS_H

#include <stdbool.h>

#include "base/fault.h"

/* IPv4, and IPv6 where the kernel has it. */
#define MAX_LISTENERS 2

/* What the child hands over. */
struct egress {
  int net_fd;
  /* The user namespace that owns the network; ABSENT if that is the launcher's. */
  int user_fd;
  int listeners[MAX_LISTENERS];
  int listener_count;
};

/* Makes the pair of sockets. */
bool egress_channel(int *ours, int *theirs);

/* In the child: listens on `port`, hands over and waits for the answer. `has_user`: also in a user namespace of its own. */
struct fault egress_hand_over(int channel_fd, int port, bool has_user);

/* In the forwarder: waits for what the child hands over. False if it never will. */
bool egress_receive(int channel_fd, struct egress *egress);

void egress_answer(int channel_fd, struct fault fault);

#endif
