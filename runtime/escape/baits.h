/*
 * What is laid out on the host for a sandbox not to reach, so that a success shows and does no harm; and what the sandbox
 * was said to limit. Who starts us says so, with `--bait KIND=VALUE`; keeper.c lays out some of it.
 */
#ifndef BAITS_H
#define BAITS_H

#include <stdbool.h>
#include <sys/types.h>

#define MAX_PATHS 32

struct paths {
  const char *list[MAX_PATHS];
  size_t count;
};

struct baits {
  /* Who started us, which we find out ourselves: the launcher or its init, if we see it. 0 or 1: somebody unseen. */
  pid_t starter_pid;
  /* secret=PATH: files in places that a sandbox hides. */
  struct paths secrets;
  /* unix=PATH: sockets in such places. */
  struct paths sockets;
  /* abstract=NAME: a socket in the abstract namespace of the host's network. */
  const char *abstract_name;
  /* tcp=PORT: who listens on the host's 127.0.0.1. */
  int tcp_port;
  /* service=PORT: who listens on the host's 127.0.0.1 in the place of taskmill, and counts connections. */
  int service_port;
  /* proxy=PORT: the port of 127.0.0.1 where the sandbox has a proxy, which none of its rules lets through. */
  int proxy_port;
  /* planted=MARK: the beginning of a secret that the host has in files, processes, shared memory and sockets. */
  const char *secret_mark;
  /* echo=PORT: who tells, on the host's 127.0.0.1, what the proxy adds to a request; placeholder=TEXT: what it replaces. */
  int echo_port;
  const char *placeholder;
  /* pid=PID: a process of the host, by its number there. */
  pid_t pid;
  /* shm=KEY and mqueue=NAME: shared memory and a message queue of the host. */
  int shm_key;
  const char *queue_name;
  /* setuid=PATH: a copy of this program in the workspace that belongs to root and is setuid. */
  const char *setuid_program;
  /* pids-max=N, memory-bytes=N, tmp-bytes=N, shm-bytes=N: what the sandbox may use. */
  long pids_max;
  long memory_bytes;
  long tmp_bytes;
  long shm_bytes;
};

/* Takes a bait as `KIND=VALUE`. False when there is none of that kind, or no room for another. */
bool baits_add(struct baits *baits, const char *argument);

#endif
