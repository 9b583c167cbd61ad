/*
 * The loop that waits for a task.
 *
 * One ppoll() waits for signals (a child ended, serve requests the end, or somebody else does), for the fault pipe of the
 * child, for words of the init and for output that has to be masked, until the nearest deadline. A task is RUNNING until the first reason to end it. Then it is
 * ASKED with TERM until its grace period is over, then KILLED until it is given up. The first reason wins: children are
 * reaped before anything else is handled, and again before a signal is sent, so a task that ended by itself keeps its true
 * outcome.
 */
#include "supervise/supervise.h"

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>

#include "base/children.h"
#include "base/clock.h"
#include "supervise/disk.h"
#include "supervise/notify.h"
#include "supervise/signals.h"

/*
 * Interval between checks of the log sizes. A task can exceed its limit for that long. So the next check is due when the
 * remaining space could be full, at the speed of a page cache. A shorter minimum would make tasks close to their limit costly
 * to watch; a longer maximum saves nothing.
 */
#define MIN_OUTPUT_LOOK_US 10000
#define MAX_OUTPUT_LOOK_US 200000
#define OUTPUT_BYTES_PER_US 1000

/* Most short programs have ended by then, and then `started` is not sent. */
#define SAY_STARTED_AFTER_US 5000

enum phase { PHASE_RUNNING, PHASE_ASKED, PHASE_KILLED };

struct loop {
  struct supervision *given;
  int signal_fd;
  enum phase phase;
  enum reason reason;
  /* The end of the present phase. */
  int64_t deadline_us;
  int64_t output_look_us;
  struct disk_watch disk;
  /* When to send `started`; NEVER before the program runs, and after it was sent. */
  int64_t say_started_us;
  struct fault fault;
};

static bool has_ended(struct loop *loop) {
  reaper_collect(loop->given->reaper);
  return loop->given->reaper->has_main_ended;
}

static void signal_task(struct loop *loop, int signal) {
  const struct reaper *reaper = loop->given->reaper;
  if (reaper->init_fd != ABSENT || !cgroup_signal(loop->given->cgroup, signal, reaper->main_pid)) reaper_signal(reaper, signal);
}

static void kill_task(struct loop *loop, int64_t now_us) {
  cgroup_kill(loop->given->cgroup);
  reaper_signal(loop->given->reaper, SIGKILL);
  loop->phase = PHASE_KILLED;
  loop->deadline_us = now_us + loop->given->arguments->give_up_ms * US_PER_MS;
}

static void ask_task(struct loop *loop, int64_t now_us) {
  signal_task(loop, SIGTERM);
  signal_task(loop, SIGCONT); /* a stopped process does not handle TERM */
  loop->phase = PHASE_ASKED;
  loop->deadline_us = now_us + loop->given->arguments->grace_ms * US_PER_MS;
}

/* Sends `started`, unless it was sent or the program does not run yet. */
static void say_started(struct loop *loop) {
  if (loop->say_started_us == NEVER) return;
  loop->say_started_us = NEVER;
  notify_started(loop->given->arguments, loop->given->identity);
}

/* Only the first reason counts, and none after the end of the task. */
static void end_because(struct loop *loop, enum reason reason) {
  if (loop->phase != PHASE_RUNNING || has_ended(loop)) return;
  loop->reason = reason;
  if (reason == REASON_OUTPUT_LIMIT || reason == REASON_DISK_LIMIT) {
    kill_task(loop, monotonic_us());
    return;
  }
  ask_task(loop, monotonic_us());
  if (reason != REASON_WALL_TIME) return;
  say_started(loop);
  notify_timeout(loop->given->arguments);
}

static void hear_child(struct loop *loop) {
  struct task *task = loop->given->task;
  loop->fault = task_read_fault(task);
  /* A child that we killed reports no fault. */
  if (is_fault(loop->fault) || loop->phase != PHASE_RUNNING) return;
  loop->say_started_us = monotonic_us() + SAY_STARTED_AFTER_US;
}

/* Bytes until the larger log reaches its limit; negative above it. */
static int64_t output_room(const struct loop *loop) {
  int64_t stdout_bytes = log_bytes(loop->given->dir->stdout_fd);
  int64_t stderr_bytes = log_bytes(loop->given->dir->stderr_fd);
  return loop->given->arguments->max_output_bytes - (stdout_bytes > stderr_bytes ? stdout_bytes : stderr_bytes);
}

static int64_t output_look_in_us(int64_t room_bytes) {
  int64_t full_in_us = room_bytes / OUTPUT_BYTES_PER_US;
  if (full_in_us < MIN_OUTPUT_LOOK_US) return MIN_OUTPUT_LOOK_US;
  return full_in_us < MAX_OUTPUT_LOOK_US ? full_in_us : MAX_OUTPUT_LOOK_US;
}

/* A task that writes too much has no grace period. */
static void end_for_writing(struct loop *loop, enum reason reason) {
  end_because(loop, reason);
  if (loop->phase == PHASE_ASKED) kill_task(loop, monotonic_us());
}

/* Handles deadlines that have passed. False if KILL does not end the main process. */
static bool heed_clock(struct loop *loop) {
  int64_t now_us = monotonic_us();
  if (now_us >= loop->say_started_us) say_started(loop);
  if (now_us >= loop->deadline_us) {
    if (loop->phase == PHASE_KILLED) return false;
    if (loop->phase == PHASE_ASKED) kill_task(loop, now_us);
    else end_because(loop, REASON_WALL_TIME);
  }
  if (now_us >= loop->output_look_us && loop->phase != PHASE_KILLED) {
    int64_t room_bytes = output_room(loop);
    loop->output_look_us = now_us + output_look_in_us(room_bytes);
    if (room_bytes < 0) end_for_writing(loop, REASON_OUTPUT_LIMIT);
  }
  if (now_us >= loop->disk.look_us && loop->phase != PHASE_KILLED && disk_watch_step(&loop->disk))
    end_for_writing(loop, REASON_DISK_LIMIT);
  return true;
}

static void await_event(struct loop *loop) {
  int64_t next_us = loop->deadline_us < loop->say_started_us ? loop->deadline_us : loop->say_started_us;
  if (loop->phase != PHASE_KILLED && loop->output_look_us < next_us) next_us = loop->output_look_us;
  if (loop->phase != PHASE_KILLED && loop->disk.look_us < next_us) next_us = loop->disk.look_us;
  const struct reaper *reaper = loop->given->reaper;
  struct masked_logs *logs = loop->given->logs;
  struct timespec timeout = timespec_of_us(reaper->has_more ? 0 : next_us - monotonic_us());
  struct pollfd events[] = {
    {.fd = loop->signal_fd, .events = POLLIN},
    {.fd = loop->given->task->fault_fd, .events = POLLIN}, /* ABSENT, after it was read, is ignored */
    /* The end of the stream would be an event at each look, until the init can be reaped. */
    {.fd = reaper->is_init_gone ? ABSENT : reaper->init_fd, .events = POLLIN},
    {.fd = logs->streams[0].from_fd, .events = POLLIN},
    {.fd = logs->streams[1].from_fd, .events = POLLIN},
  };
  if (ppoll(events, sizeof events / sizeof events[0], &timeout, NULL) <= 0) return;
  if (events[1].revents != 0) hear_child(loop);
  for (int i = 0; i < 2; i++)
    if (events[3 + i].revents != 0) masked_stream_read(&logs->streams[i]);
  bool has_signals = events[0].revents != 0;
  enum reason asked = has_signals ? signals_heed(loop->signal_fd) : REASON_NONE;
  if (!has_ended(loop) && asked != REASON_NONE) end_because(loop, asked);
}

static void conclude(struct loop *loop, struct outcome *outcome) {
  struct reaper *reaper = loop->given->reaper;
  outcome->reason = loop->reason;
  outcome->fault = loop->fault;
  if (!reaper->has_main_ended) {
    outcome->how = HOW_ABANDONED;
    reaper->ended_us = monotonic_us();
    reaper->ended_epoch_ms = epoch_ms();
    reaper->leftovers_alive = children_count();
  } else if (is_fault(loop->fault)) {
    outcome->how = HOW_NOT_STARTED;
  } else if (WIFSIGNALED(reaper->status)) {
    outcome->how = HOW_SIGNALED;
    outcome->code = WTERMSIG(reaper->status);
  } else {
    outcome->how = HOW_EXITED;
    outcome->code = WEXITSTATUS(reaper->status);
  }
  outcome->finished_ms = reaper->ended_epoch_ms;
  outcome->duration_us = reaper->ended_us - loop->given->started_us;
  outcome->usage = usage_of_children();
  /* An init that is not reaped yet has reported its usage. */
  if (!reaper->is_empty) usage_add(&outcome->usage, reaper->init_usage);
  outcome->is_usage_lost = outcome->how != HOW_NOT_STARTED && reaper->init_fd != ABSENT && !reaper->is_init_done;
  outcome->disk_bytes = loop->disk.limit_bytes == ABSENT ? ABSENT : loop->disk.written_bytes;
  outcome->is_disk_too_deep = loop->disk.is_too_deep;
  outcome->leftovers_killed = reaper->leftovers_killed;
  outcome->leftovers_alive = reaper->leftovers_alive;
}

/* Starts the program, unless an end was requested before. */
static void begin(struct loop *loop) {
  struct task *task = loop->given->task;
  enum reason asked = loop->given->asked;
  if (asked == REASON_NONE && signals_take_kill()) asked = REASON_KILL;
  if (asked == REASON_NONE) task_go(task);
  else if (task->is_set_up && loop->given->reaper->init_fd == ABSENT) end_because(loop, asked);
  else if (!has_ended(loop)) {
    /* There is no program yet that could handle TERM, and an init waits for it to begin. */
    loop->reason = asked;
    kill_task(loop, monotonic_us());
  }
}

void supervise(struct supervision *supervision, int signal_fd, struct outcome *outcome) {
  struct loop loop = {
    .given = supervision,
    .signal_fd = signal_fd,
    .deadline_us = supervision->started_us + supervision->arguments->wall_time_ms * US_PER_MS,
    .output_look_us = supervision->started_us + output_look_in_us(supervision->arguments->max_output_bytes),
    .say_started_us = NEVER,
  };
  disk_watch_start(&loop.disk, supervision->dir->fd, supervision->cgroup, supervision->arguments->disk_bytes);
  begin(&loop);

  while (!supervision->reaper->has_main_ended) {
    await_event(&loop);
    if (!has_ended(&loop) && !heed_clock(&loop)) break;
  }
  if (supervision->reaper->has_main_ended) {
    /* The fault may have arrived together with the end. */
    if (supervision->task->fault_fd != ABSENT) hear_child(&loop);
    int64_t give_up_us = monotonic_us() + supervision->arguments->give_up_ms * US_PER_MS;
    reaper_kill_all(supervision->reaper, supervision->cgroup, give_up_us);
  }
  disk_watch_finish(&loop.disk);
  conclude(&loop, outcome);
}
