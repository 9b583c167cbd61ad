#include "server/fleet.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "supervise/notify.h"
#include "supervise/outcome.h"

/* Members for which there is room at the beginning. */
#define FIRST_SIZE 64

/* How long the line of one that ended in order waits for others, and how many of them wait. */
#define GATHER_US 20000
#define GATHERED_AT_ONCE 64

/* How long the line of one that was killed is held at most: what it left is killed by then, or hangs in the kernel. */
#define MAX_HELD_US 5000000

/* pid of one that has ended, or never was. */
#define NO_PID 0

struct member {
  pid_t pid;
  uint32_t launch;
  /* Once it has ended: its exit code, 128 + n for signal n. */
  int exit_code;
  /* By a signal to itself. */
  bool is_killed;
  /* On the monotonic clock; 0 of one that is not held. */
  int64_t held_until_us;
  /* Why it could not be forked, until that was told. */
  struct fault fault;
  char task_id[MAX_TASK_ID_BYTES + 1];
};

static void note_untold(struct fleet *fleet, bool is_in_order) {
  int64_t tell_at_us = is_in_order && fleet->untold < GATHERED_AT_ONCE ? monotonic_us() + GATHER_US : 0;
  if (fleet->untold++ == 0 || tell_at_us < fleet->tell_at_us) fleet->tell_at_us = tell_at_us;
}

bool fleet_make_room(struct fleet *fleet) {
  if (fleet->count < fleet->size) return true;
  size_t size = fleet->size == 0 ? FIRST_SIZE : fleet->size * 2;
  struct member *members = realloc(fleet->members, size * sizeof *members);
  if (members == NULL) return false;
  fleet->members = members;
  fleet->size = size;
  return true;
}

static struct member *add(struct fleet *fleet, const struct arguments *arguments, uint32_t launch) {
  struct member *member = &fleet->members[fleet->count++];
  *member = (struct member){.pid = NO_PID, .launch = launch, .fault = no_fault()};
  strncpy(member->task_id, arguments->task_id, MAX_TASK_ID_BYTES);
  return member;
}

void fleet_add(struct fleet *fleet, const struct arguments *arguments, uint32_t launch, pid_t pid) {
  add(fleet, arguments, launch)->pid = pid;
}

void fleet_add_failed(struct fleet *fleet, const struct arguments *arguments, uint32_t launch, struct fault fault) {
  struct member *member = add(fleet, arguments, launch);
  member->fault = fault;
  member->exit_code = EXIT_NOT_STARTED;
  note_untold(fleet, false);
}

static void end(struct member *member, int exit_code) {
  member->pid = NO_PID;
  member->exit_code = exit_code;
}

static struct member *find(struct fleet *fleet, pid_t pid) {
  for (size_t i = 0; i < fleet->count; i++)
    if (fleet->members[i].pid == pid) return &fleet->members[i];
  return NULL;
}

void fleet_end(struct fleet *fleet, pid_t pid, int status) {
  struct member *member = find(fleet, pid);
  if (member == NULL) return;
  if (!WIFSIGNALED(status)) {
    end(member, WEXITSTATUS(status));
    note_untold(fleet, member->exit_code != EXIT_NOT_STARTED);
    return;
  }
  end(member, EXIT_SIGNAL_BASE + WTERMSIG(status));
  member->is_killed = true;
  member->held_until_us = monotonic_us() + MAX_HELD_US;
  fleet->held++;
}

static bool is_held(const struct member *member) { return member->held_until_us != 0; }

void fleet_release(struct fleet *fleet, bool is_nothing_left) {
  int64_t now_us = fleet->held > 0 ? monotonic_us() : 0;
  for (size_t i = 0; fleet->held > 0 && i < fleet->count; i++) {
    struct member *member = &fleet->members[i];
    if (!is_held(member) || (!is_nothing_left && now_us < member->held_until_us)) continue;
    member->held_until_us = 0;
    fleet->held--;
    note_untold(fleet, false);
  }
}

int fleet_release_in_ms(const struct fleet *fleet) {
  if (fleet->held == 0) return -1;
  int64_t first_us = INT64_MAX;
  for (size_t i = 0; i < fleet->count; i++) {
    const struct member *member = &fleet->members[i];
    if (is_held(member) && member->held_until_us < first_us) first_us = member->held_until_us;
  }
  int64_t left_us = first_us - monotonic_us();
  return left_us <= 0 ? 0 : (int)(left_us / US_PER_MS) + 1;
}

/* False when the pipe is full. */
static bool tell(const struct fleet *fleet, struct member *member) {
  struct arguments arguments = {.task_id = member->task_id, .notify_fd = fleet->notify_fd};
  if (is_fault(member->fault) && !notify_failed(&arguments, member->fault)) return false;
  member->fault = no_fault();
  return notify_gone(&arguments, member->launch, member->exit_code, member->is_killed);
}

int fleet_tell_in_ms(const struct fleet *fleet) {
  if (fleet->untold == 0) return -1;
  int64_t left_us = fleet->tell_at_us - monotonic_us();
  return left_us <= 0 ? 0 : (int)(left_us / US_PER_MS) + 1;
}

void fleet_tell(struct fleet *fleet) {
  for (size_t i = 0; fleet->untold > 0 && i < fleet->count;) {
    struct member *member = &fleet->members[i];
    if (member->pid != NO_PID || is_held(member)) {
      i++;
      continue;
    }
    if (!tell(fleet, member)) return;
    fleet->untold--;
    *member = fleet->members[--fleet->count];
  }
}
