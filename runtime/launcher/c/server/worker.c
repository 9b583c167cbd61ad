#include "server/worker.h"

#include <unistd.h>

#include "sandbox/sandbox.h"

extern char **environ;

struct worker worker_alone(void) {
  return (struct worker){.channel_fd = ABSENT, .done_fd = ABSENT, .fork_server_pid = ABSENT, .notify_fd = ABSENT};
}

void worker_begin(struct worker *worker) {
  if (worker->channel_fd != ABSENT) condition_note(&worker->condition);
}

/* Those in a pid namespace of their own have no name for us. */
static bool can_reach_us(const struct arguments *arguments) {
  struct sandbox sandbox = sandbox_of(arguments);
  return !sandbox.is_on || !sandbox_has(&sandbox, FEATURE_PID);
}

void worker_take(struct worker *worker, struct arguments *arguments, int lock_fd) {
  environ = worker->request.variables;
  setproctitle_show(&worker->title, worker->request.argv, worker->request.variables);
  arguments->notify_fd = worker->notify_fd;
  arguments->fork_server_pid = worker->fork_server_pid;
  arguments->lock_fd = lock_fd;
}

/* A service that looks for what a task left behind must not find us any more. */
static void forget_task(struct worker *worker) {
  static char *nothing[] = {NULL};
  environ = nothing;
  setproctitle_hide(&worker->title);
  inbox_wipe(&worker->inbox, &worker->request);
}

static bool say_done(const struct worker *worker, int exit_code) {
  struct done_word word = {getpid(), worker->request.launch, exit_code};
  return write(worker->done_fd, &word, sizeof word) == (ssize_t)sizeof word;
}

enum worker_state worker_next(struct worker *worker, struct arguments *arguments, int exit_code, struct text *complaint) {
  if (worker->channel_fd == ABSENT) return WORKER_ENDED;
  if (can_reach_us(arguments) && !condition_holds(&worker->condition)) return WORKER_ENDED;
  forget_task(worker);
  if (!say_done(worker, exit_code)) return WORKER_ENDED;
  text_clear(complaint);
  int lock_fd;
  enum inbox_state state = inbox_receive(&worker->inbox, worker->channel_fd, &worker->request, &lock_fd, complaint);
  if (state == INBOX_ENDED) return WORKER_ENDED;
  if (state != INBOX_HAS_REQUEST || !arguments_parse(arguments, worker->request.argv, complaint)) return WORKER_BROKEN;
  worker_take(worker, arguments, lock_fd);
  return WORKER_HAS_TASK;
}
