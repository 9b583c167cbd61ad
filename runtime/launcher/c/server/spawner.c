#include "server/spawner.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/children.h"
#include "base/complaint.h"
#include "base/identity.h"
#include "server/crew.h"
#include "server/fleet.h"
#include "server/inbox.h"
#include "server/orphans.h"
#include "server/title.h"
#include "supervise/signals.h"
#include "supervise/task-dir.h"

extern char **environ;

/* Children that are reaped in one go: orphans that fork may end as fast as we can reap, and others wait for us, too. */
#define REAPED_AT_ONCE 1024

struct spawner {
  struct inbox inbox;
  struct fleet fleet;
  struct crew crew;
  struct orphans orphans;
  struct title title;
  int signal_fd;
  pid_t pid;
  /* There may be children that have ended and were not reaped yet. */
  bool has_more;
};

/* Which process it is that returns. With the last two, the complaint says what is wrong. */
enum side {
  SIDE_SPAWNER,
  SIDE_LAUNCHER,
  SIDE_SENSELESS_LAUNCHER,
  /* A spawner that cannot go on. */
  SIDE_BROKEN,
};

bool spawner_is_wanted(char **argv) { return argv[0] != NULL && argv[1] != NULL && strcmp(argv[1], "--spawner") == 0; }

static bool complain(struct text *complaint, const char *what) {
  text_add(complaint, what);
  return false;
}

/* Nothing but KILL ends us. A launcher sets its own signals. */
static bool begin(struct spawner *spawner, char **argv, struct text *complaint) {
  int64_t notify_fd;
  if (argv[2] == NULL || !arguments_parse_fd(argv[2], &notify_fd)) return complain(complaint, "--spawner needs a descriptor");
  *spawner = (struct spawner){
    .inbox = {.fd = STDIN_FILENO}, .fleet = {.notify_fd = (int)notify_fd}, .pid = getpid()};
  title_find(&spawner->title, argv, environ);
  identity_read_boot(); /* if not now, each launcher tries, and says what is wrong */
  sigset_t all, children;
  sigfillset(&all);
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  if (sigprocmask(SIG_SETMASK, &all, NULL) == 0) {
    spawner->signal_fd = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    if (spawner->signal_fd >= 0 && crew_found(&spawner->crew) && orphans_found(&spawner->orphans)) return true;
  }
  text_add(complaint, "cannot watch launchers: ");
  return complain(complaint, strerror(errno));
}

/* What a fork leaves to be done; the rest is that of every launcher, which closes what it was not given. */
static void become_launcher(const struct spawner *spawner, const struct request *request, struct arguments *arguments,
                            int lock_fd, int channel_fd, struct worker *worker) {
  setsid();
  close(STDIN_FILENO);
  *worker = (struct worker){
    .channel_fd = channel_fd,
    .done_fd = channel_fd == ABSENT ? ABSENT : spawner->crew.done_write_fd,
    .spawner_pid = spawner->pid,
    .notify_fd = spawner->fleet.notify_fd,
    .title = spawner->title,
    .inbox = spawner->inbox,
    .request = *request,
  };
  inbox_wipe_rest(&worker->inbox);
  worker_take(worker, arguments, lock_fd);
}

/* The pid of a launcher that was not there before; 0 in that itself, -1 with errno. */
static pid_t fork_launcher(struct spawner *spawner, const struct request *request, struct arguments *arguments, int lock_fd,
                           struct worker *worker) {
  int ours, its;
  crew_make_channel(&spawner->crew, request, &ours, &its);
  pid_t pid = fork();
  if (pid == 0) {
    become_launcher(spawner, request, arguments, lock_fd, its, worker);
    return pid;
  }
  int error = errno;
  if (its != ABSENT) close(its);
  if (pid > 0) {
    orphans_add_launcher(&spawner->orphans, pid);
    crew_add(&spawner->crew, pid, ours);
  } else if (ours != ABSENT) {
    close(ours);
  }
  errno = error;
  return pid;
}

static enum side launch(struct spawner *spawner, const struct request *request, struct arguments *arguments,
                        struct worker *worker, struct text *complaint) {
  struct fleet *fleet = &spawner->fleet;
  bool is_sound = arguments_parse(arguments, request->argv, complaint);
  if (!arguments_name_task(arguments)) return SIDE_BROKEN; /* there is nobody to tell of */
  if (!fleet_make_room(fleet) || !orphans_make_room(&spawner->orphans)) {
    text_clear(complaint);
    text_add(complaint, "no memory for another launcher");
    return SIDE_BROKEN;
  }
  int lock_fd = ABSENT;
  struct fault fault = is_sound ? task_dir_lock(&lock_fd, arguments) : no_fault();
  pid_t pid = !is_fault(fault) && is_sound ? crew_pass(&spawner->crew, request, lock_fd) : ABSENT;
  if (!is_fault(fault) && pid == ABSENT) {
    pid = fork_launcher(spawner, request, arguments, lock_fd, worker);
    if (pid == 0) return is_sound ? SIDE_LAUNCHER : SIDE_SENSELESS_LAUNCHER;
    if (pid < 0) fault = fault_at(STEP_FORK);
  }
  /* A stale request must not be reported: the service would fail the new task of the same id. */
  if (fault.step == STEP_TASK_DIR && fault.error == ESTALE) {
    complain_of_fault(arguments->task_id, fault);
    fleet_add_failed(fleet, arguments, request->launch, no_fault());
  } else if (is_fault(fault)) fleet_add_failed(fleet, arguments, request->launch, fault);
  else fleet_add(fleet, arguments, request->launch, pid);
  if (lock_fd >= 0) close(lock_fd); /* now the launcher's alone */
  text_clear(complaint);
  return SIDE_SPAWNER;
}

static enum side launch_all(struct spawner *spawner, struct arguments *arguments, struct worker *worker,
                            struct text *complaint) {
  for (;;) {
    struct request request;
    enum inbox_state state = inbox_take(&spawner->inbox, &request, complaint);
    if (state == INBOX_WAITS) return SIDE_SPAWNER;
    if (state == INBOX_BROKEN) return SIDE_BROKEN;
    enum side side = launch(spawner, &request, arguments, worker, complaint);
    if (side == SIDE_LAUNCHER || side == SIDE_SENSELESS_LAUNCHER) return side; /* and the request is its own */
    inbox_wipe(&spawner->inbox, &request);
    if (side == SIDE_BROKEN) return side;
  }
}

static void hear_done(struct spawner *spawner) {
  struct done_word word;
  while (crew_hear(&spawner->crew, &word)) fleet_end(&spawner->fleet, word.pid, word.launch, word.exit_code);
}

static void reap(struct spawner *spawner) {
  spawner->has_more = true;
  for (int reaped = 0; reaped < REAPED_AT_ONCE; reaped++) {
    int status;
    pid_t pid = waitpid(-1, &status, WNOHANG | __WALL);
    if (pid < 0 && errno == EINTR) continue;
    if (pid <= 0) {
      spawner->has_more = false;
      return;
    }
    if (WIFSTOPPED(status)) {
      child_let_go(pid, WSTOPSIG(status)); /* an orphan */
      continue;
    }
    hear_done(spawner); /* its last word came before its end */
    crew_remove(&spawner->crew, pid);
    fleet_end_process(&spawner->fleet, pid, status);
    orphans_note_end(&spawner->orphans, pid, status);
  }
}

/* The one that comes first; either is -1 for never. */
static int earlier_ms(int one_ms, int other_ms) {
  if (one_ms < 0) return other_ms;
  return other_ms < 0 || one_ms < other_ms ? one_ms : other_ms;
}

bool spawner_run(char **argv, struct arguments *arguments, struct worker *worker, struct text *complaint) {
  /* Not on the stack, so that a checker for leaks finds what it holds in every process. */
  static struct spawner spawner;
  if (!begin(&spawner, argv, complaint)) return false;
  for (;;) {
    int tell_in_ms = fleet_tell_in_ms(&spawner.fleet);
    bool is_pipe_full = tell_in_ms == 0; /* or it would have been told */
    struct pollfd events[] = {
      {.fd = spawner.inbox.fd, .events = POLLIN},
      {.fd = spawner.signal_fd, .events = POLLIN},
      {.fd = spawner.crew.done_fd, .events = POLLIN},
      {.fd = is_pipe_full ? spawner.fleet.notify_fd : ABSENT, .events = POLLOUT},
    };
    int timeout_ms = earlier_ms(is_pipe_full ? -1 : tell_in_ms, crew_let_go_in_ms(&spawner.crew));
    timeout_ms = earlier_ms(timeout_ms, fleet_release_in_ms(&spawner.fleet));
    timeout_ms = earlier_ms(timeout_ms, spawner.has_more ? 0 : orphans_look_in_ms(&spawner.orphans));
    if (poll(events, sizeof events / sizeof events[0], timeout_ms) < 0) continue;
    if (events[1].revents != 0) signals_forget(spawner.signal_fd);
    if (events[1].revents != 0 || spawner.has_more) reap(&spawner);
    orphans_kill(&spawner.orphans);
    fleet_release(&spawner.fleet, orphans_are_gone(&spawner.orphans)); /* nobody is told before of the end of their launcher */
    if (events[2].revents != 0) hear_done(&spawner);
    if (events[0].revents != 0) {
      enum inbox_state state = inbox_read(&spawner.inbox, complaint);
      if (state == INBOX_ENDED || state == INBOX_BROKEN) return false;
      enum side side = launch_all(&spawner, arguments, worker, complaint);
      if (side != SIDE_SPAWNER) return side == SIDE_LAUNCHER;
    }
    if (fleet_tell_in_ms(&spawner.fleet) == 0) fleet_tell(&spawner.fleet);
    crew_let_go(&spawner.crew);
  }
}
