#include "server/crew.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

/* After the last task was passed on: a service that is busy has the next one long before. */
#define PATIENCE_US 10000000

bool crew_found(struct crew *crew) {
  int ends[2];
  /* A fork server that is stopped must not hold up its launchers: what cannot be said is seen by their end. */
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
  *crew = (struct crew){.done_fd = ends[0], .done_write_fd = ends[1]};
  return true;
}

void crew_make_channel(const struct crew *crew, const struct request *request, int *ours, int *its) {
  int ends[2];
  *ours = *its = ABSENT;
  if (crew->count == MAX_CREW || request->length > MAX_PASSED_BYTES) return;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return;
  *ours = ends[0];
  *its = ends[1];
}

void crew_add(struct crew *crew, pid_t pid, int channel_fd) {
  if (channel_fd != ABSENT) crew->mates[crew->count++] = (struct mate){.pid = pid, .channel_fd = channel_fd};
}

static struct mate *find(struct crew *crew, pid_t pid) {
  for (int i = 0; i < crew->count; i++)
    if (crew->mates[i].pid == pid) return &crew->mates[i];
  return NULL;
}

static void set_waiting(struct crew *crew, struct mate *mate, bool is_waiting) {
  if (mate->is_waiting == is_waiting) return;
  mate->is_waiting = is_waiting;
  crew->waiting += is_waiting ? 1 : -1;
  crew->let_go_at_us = monotonic_us() + PATIENCE_US;
}

/* It finds the end of its channel, and ends. */
static void dismiss(struct crew *crew, struct mate *mate) {
  set_waiting(crew, mate, false);
  close(mate->channel_fd);
  *mate = crew->mates[--crew->count];
}

/* The one that came last: what it has of memory and caches is warm. */
pid_t crew_pass(struct crew *crew, const struct request *request, int lock_fd) {
  for (int i = crew->count; crew->waiting > 0 && i-- > 0;) {
    struct mate *mate = &crew->mates[i];
    if (!mate->is_waiting) continue;
    pid_t pid = mate->pid;
    if (inbox_pass(request, mate->channel_fd, lock_fd)) {
      set_waiting(crew, mate, false);
      return pid;
    }
    if (errno == EMSGSIZE || errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM) return ABSENT;
    dismiss(crew, mate); /* it was killed */
  }
  return ABSENT;
}

bool crew_hear(struct crew *crew, struct done_word *word) {
  if (read(crew->done_fd, word, sizeof *word) != (ssize_t)sizeof *word) return false;
  struct mate *mate = find(crew, word->pid);
  if (mate != NULL) set_waiting(crew, mate, true);
  return true;
}

void crew_remove(struct crew *crew, pid_t pid) {
  struct mate *mate = find(crew, pid);
  if (mate != NULL) dismiss(crew, mate);
}

int crew_let_go_in_ms(const struct crew *crew) {
  if (crew->waiting == 0) return -1;
  int64_t left_us = crew->let_go_at_us - monotonic_us();
  return left_us <= 0 ? 0 : (int)(left_us / US_PER_MS) + 1;
}

void crew_let_go(struct crew *crew) {
  if (crew_let_go_in_ms(crew) != 0) return;
  for (int i = crew->count; i-- > 0;)
    if (crew->mates[i].is_waiting) dismiss(crew, &crew->mates[i]);
}
