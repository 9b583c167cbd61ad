#include "fleet.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "clock.h"
#include "notify.h"
#include "outcome.h"

/* Members for which there is room at the beginning. */
#define FIRST_SIZE 64

/* How long the line of one that ended in order waits for others, and how many of them wait. */
#define GATHER_US 20000
#define GATHERED_AT_ONCE 64

/* pid of one that has ended, or never was. */
#define NO_PID 0

struct member {
  pid_t pid;
  uint32_t launch;
  /* Once it has ended: its exit code, 128 + n for signal n. */
  int exit_code;
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

static void end(struct fleet *fleet, struct member *member, int exit_code, bool is_in_order) {
  member->pid = NO_PID;
  member->exit_code = exit_code;
  note_untold(fleet, is_in_order);
}

/* The one that the process has now. */
static struct member *find(struct fleet *fleet, pid_t pid) {
  for (size_t i = 0; i < fleet->count; i++)
    if (fleet->members[i].pid == pid) return &fleet->members[i];
  return NULL;
}

void fleet_end(struct fleet *fleet, pid_t pid, uint32_t launch, int exit_code) {
  struct member *member = find(fleet, pid);
  if (member != NULL && member->launch == launch) end(fleet, member, exit_code, true);
}

void fleet_end_process(struct fleet *fleet, pid_t pid, int status) {
  struct member *member = find(fleet, pid);
  if (member == NULL) return;
  bool is_in_order = WIFEXITED(status) && WEXITSTATUS(status) != EXIT_NOT_STARTED;
  end(fleet, member, WIFSIGNALED(status) ? EXIT_SIGNAL_BASE + WTERMSIG(status) : WEXITSTATUS(status), is_in_order);
}

/* False when the pipe is full. */
static bool tell(const struct fleet *fleet, struct member *member) {
  struct arguments arguments = {.task_id = member->task_id, .notify_fd = fleet->notify_fd};
  if (is_fault(member->fault) && !notify_failed(&arguments, member->fault)) return false;
  member->fault = no_fault();
  return notify_gone(&arguments, member->launch, member->exit_code);
}

int fleet_tell_in_ms(const struct fleet *fleet) {
  if (fleet->untold == 0) return -1;
  int64_t left_us = fleet->tell_at_us - monotonic_us();
  return left_us <= 0 ? 0 : (int)(left_us / US_PER_MS) + 1;
}

void fleet_tell(struct fleet *fleet) {
  for (size_t i = 0; fleet->untold > 0 && i < fleet->count;) {
    struct member *member = &fleet->members[i];
    if (member->pid != NO_PID) {
      i++;
      continue;
    }
    if (!tell(fleet, member)) return;
    fleet->untold--;
    *member = fleet->members[--fleet->count];
  }
}
