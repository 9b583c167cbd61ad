#include "server/fork-server.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/children.h"
#include "base/clock.h"
#include "base/complaint.h"
#include "base/identity.h"
#include "base/setproctitle.h"
#include "server/inbox.h"
#include "server/job-table.h"
#include "server/networks.h"
#include "server/orphans.h"
#include "supervise/reaper.h"
#include "supervise/signals.h"
#include "supervise/task-dir.h"

extern char **environ;

/* Children reaped in one go. Forking orphans may end as fast as we reap, and requests wait meanwhile. */
#define REAPED_AT_ONCE 1024

struct fork_server {
  struct inbox inbox;
  struct job_table jobs;
  struct orphans orphans;
  struct networks networks;
  int signal_fd;
  pid_t pid;
  /* More children may have ended than were reaped in one go. */
  bool has_more;
};

/* Which process returns from a launch. */
enum side {
  SIDE_FORK_SERVER,
  SIDE_LAUNCHER,
  /* The fork server must exit; the complaint says why. */
  SIDE_BROKEN,
};

bool fork_server_is_wanted(char **argv) { return argv[0] != NULL && argv[1] != NULL && strcmp(argv[1], "--fork-server") == 0; }

/* Blocks all signals, so only KILL ends the fork server. */
static bool begin(struct fork_server *server, char **argv, struct text *complaint) {
  int64_t notify_fd;
  if (argv[2] == NULL || !arguments_parse_fd(argv[2], &notify_fd)) return COMPLAIN(complaint, "--fork-server needs a descriptor");
  *server = (struct fork_server){
    .inbox = {.fd = STDIN_FILENO}, .jobs = {.notify_fd = (int)notify_fd}, .orphans = {.look_us = NEVER},
    .networks = {.own_fd = ABSENT, .due_us = NEVER}, .pid = getpid()};
  identity_read_boot(); /* if not now, each launcher tries, and says what is wrong */
  server->signal_fd = signals_watch();
  if (server->signal_fd != ABSENT && !is_fault(reaper_become())) return true;
  return COMPLAIN(complaint, "cannot watch launchers: %s", strerror(errno));
}

static void close_fd(int fd) {
  if (fd >= 0) close(fd);
}

/* Turns the forked child into a launcher. */
static void become_launcher(struct fork_server *server, const struct request *request, struct arguments *arguments,
                            int lock_fd, int net_fd) {
  setsid();
  arguments->has_network = net_fd != ABSENT && setns(net_fd, CLONE_NEWNET) == 0;
  close(STDIN_FILENO);
  inbox_wipe_rest(&server->inbox);
  environ = request->variables;
  setproctitle_show(request->argv, request->variables);
  arguments->notify_fd = server->jobs.notify_fd;
  arguments->fork_server_pid = server->pid;
  arguments->lock_fd = lock_fd;
}

static enum side launch(struct fork_server *server, const struct request *request, struct arguments *arguments,
                        struct text *complaint) {
  bool is_sound = arguments_parse(arguments, request->argv, complaint);
  if (!arguments_name_task(arguments)) return SIDE_BROKEN; /* without an id, serve cannot be told */
  if (!job_table_make_room(&server->jobs)) {
    text_set(complaint, "no memory for another launcher");
    return SIDE_BROKEN;
  }
  if (!is_sound) {
    complain_of_usage(complaint);
    text_clear(complaint);
    job_table_add_failed(&server->jobs, arguments, request->launch, no_fault());
    return SIDE_FORK_SERVER;
  }
  int lock_fd;
  struct fault fault = task_dir_lock(&lock_fd, arguments);
  int net_fd = is_fault(fault) ? ABSENT : networks_take(&server->networks, arguments);
  pid_t pid = is_fault(fault) ? ABSENT : fork();
  if (pid == 0) {
    become_launcher(server, request, arguments, lock_fd, net_fd);
    return SIDE_LAUNCHER;
  }
  if (!is_fault(fault) && pid < 0) fault = fault_at(STEP_FORK);
  /* A stale request must not be reported: the service would fail the new task of the same id. */
  bool is_stale = fault.step == STEP_TASK_DIR && fault.error == ESTALE;
  if (is_stale) complain_of_fault(arguments->task_id, fault);
  if (is_fault(fault)) job_table_add_failed(&server->jobs, arguments, request->launch, is_stale ? no_fault() : fault);
  else job_table_add(&server->jobs, arguments, request->launch, pid);
  /* Now they are the launcher's alone. */
  close_fd(lock_fd);
  close_fd(net_fd);
  return SIDE_FORK_SERVER;
}

static enum side launch_all(struct fork_server *server, struct arguments *arguments, struct text *complaint) {
  for (;;) {
    struct request request;
    enum inbox_state state = inbox_take(&server->inbox, &request, complaint);
    if (state == INBOX_WAITS) return SIDE_FORK_SERVER;
    if (state == INBOX_BROKEN) return SIDE_BROKEN;
    enum side side = launch(server, &request, arguments, complaint);
    if (side == SIDE_LAUNCHER) return side; /* it keeps its request */
    inbox_wipe(&server->inbox, &request);
    if (side == SIDE_BROKEN) return side;
  }
}

static void reap(struct fork_server *server) {
  server->has_more = true;
  for (int reaped = 0; reaped < REAPED_AT_ONCE; reaped++) {
    int status;
    pid_t pid = child_reap(&status, false);
    if (pid <= 0) {
      server->has_more = false;
      return;
    }
    if (!job_table_note_end(&server->jobs, pid, status)) server->orphans.look_us = 0;
  }
}

/* The next deadline. */
static int64_t next_us(const struct fork_server *server, bool is_pipe_full) {
  int64_t next_us = job_table_drained_us(&server->jobs);
  int64_t tell_us = is_pipe_full ? NEVER : job_table_tell_us(&server->jobs);
  if (tell_us < next_us) next_us = tell_us;
  if (server->orphans.look_us < next_us) next_us = server->orphans.look_us;
  if (server->networks.due_us < next_us) next_us = server->networks.due_us;
  return server->has_more ? 0 : next_us;
}

bool fork_server_run(char **argv, struct arguments *arguments, struct text *complaint) {
  /* Static, so that a leak checker finds its memory in every process. */
  static struct fork_server server;
  if (!begin(&server, argv, complaint)) return false;
  for (bool is_pipe_full = false;;) {
    struct pollfd events[] = {
      {.fd = server.inbox.fd, .events = POLLIN},
      {.fd = server.signal_fd, .events = POLLIN},
      {.fd = is_pipe_full ? server.jobs.notify_fd : ABSENT, .events = POLLOUT},
    };
    int ready = poll(events, sizeof events / sizeof events[0], ms_until(next_us(&server, is_pipe_full)));
    if (ready < 0) continue;
    if (ready == 0 && ms_until(server.networks.due_us) == 0 && is_fault(networks_add(&server.networks)))
      return COMPLAIN(complaint, "cannot return to its network: %s", strerror(errno));
    if (events[1].revents != 0) signals_heed(server.signal_fd);
    if (events[1].revents != 0 || server.has_more) reap(&server);
    orphans_kill(&server.orphans, &server.jobs);
    job_table_end_draining(&server.jobs, server.orphans.look_us == NEVER);
    if (events[0].revents != 0) {
      enum inbox_state state = inbox_read(&server.inbox, complaint);
      enum side side = SIDE_BROKEN;
      if (state == INBOX_WAITS) side = launch_all(&server, arguments, complaint);
      if (side != SIDE_FORK_SERVER) return side == SIDE_LAUNCHER;
    }
    is_pipe_full = ms_until(job_table_tell_us(&server.jobs)) == 0 && !job_table_tell(&server.jobs);
  }
}
