/*
 * The launchers of a fork server that can take another task (worker.h): some that have one, and those that wait.
 */
#ifndef CREW_H
#define CREW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "server/inbox.h"
#include "server/worker.h"

/* As many as are worth keeping: those beyond are forked for one task each. */
#define MAX_CREW 32

struct mate {
  pid_t pid;
  /* Ours of its channel. */
  int channel_fd;
  bool is_waiting;
};

struct crew {
  /* Both ends of the pipe for words of what is done. */
  int done_fd;
  int done_write_fd;
  struct mate mates[MAX_CREW];
  int count;
  int waiting;
  /* On the monotonic clock: when those that wait are let go. */
  int64_t let_go_at_us;
};

/* False with errno. */
bool crew_found(struct crew *crew);

/*
 * The two ends of the channel of one that is about to be forked for a request; both are ABSENT where it shall take one task
 * only. That is so with a long request, too: as long as it lives it is as large as that, and the kernel says so of each task.
 */
void crew_make_channel(const struct crew *crew, const struct request *request, int *ours, int *its);

/* One that was forked, with our end of its channel. */
void crew_add(struct crew *crew, pid_t pid, int channel_fd);

/* Passes a request to one that waits. Its pid, or ABSENT where there is none that can take it. */
pid_t crew_pass(struct crew *crew, const struct request *request, int lock_fd);

/* The next word, if there is one. Whoever says it waits from now on. */
bool crew_hear(struct crew *crew, struct done_word *word);

/* One that has ended. */
void crew_remove(struct crew *crew, pid_t pid);

/* Milliseconds until those that wait have waited for too long; -1 when there are none. */
int crew_let_go_in_ms(const struct crew *crew);

/* Lets those go that have waited for too long. */
void crew_let_go(struct crew *crew);

#endif
