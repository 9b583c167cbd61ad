#include "spawner.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "fleet.h"
#include "identity.h"
#include "inbox.h"
#include "task-dir.h"
#include "title.h"

extern char **environ;

struct spawner {
  struct inbox inbox;
  struct fleet fleet;
  struct title title;
  int signal_fd;
  pid_t pid;
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
    if (spawner->signal_fd >= 0) return true;
  }
  text_add(complaint, "cannot watch launchers: ");
  return complain(complaint, strerror(errno));
}

/* What a fork leaves to be done; the rest is that of every launcher, which closes what it was not given. */
static void become_launcher(const struct spawner *spawner, const struct request *request, struct arguments *arguments) {
  setpgid(0, 0); /* whoever ends a group means one of us; the session is ours, and has no terminal */
  close(STDIN_FILENO);
  environ = request->variables;
  title_show(&spawner->title, request->argv, request->variables);
  arguments->notify_fd = spawner->fleet.notify_fd;
  arguments->spawner_pid = spawner->pid;
}

static enum side launch(struct spawner *spawner, const struct request *request, struct arguments *arguments,
                        struct text *complaint) {
  struct fleet *fleet = &spawner->fleet;
  bool is_sound = arguments_parse(arguments, request->argv, complaint);
  if (!arguments_name_task(arguments)) return SIDE_BROKEN; /* there is nobody to tell of */
  if (!fleet_make_room(fleet)) {
    text_clear(complaint);
    text_add(complaint, "no memory for another launcher");
    return SIDE_BROKEN;
  }
  int lock_fd = ABSENT;
  struct fault fault = is_sound ? task_dir_lock(&lock_fd, arguments->task_dir) : no_fault();
  pid_t pid = is_fault(fault) ? ABSENT : fork();
  if (pid == 0) {
    become_launcher(spawner, request, arguments);
    arguments->lock_fd = lock_fd;
    return is_sound ? SIDE_LAUNCHER : SIDE_SENSELESS_LAUNCHER;
  }
  if (!is_fault(fault) && pid < 0) fault = fault_at(STEP_FORK);
  if (is_fault(fault)) fleet_add_failed(fleet, arguments, request->launch, fault);
  else fleet_add(fleet, arguments, request->launch, pid);
  if (lock_fd >= 0) close(lock_fd); /* now the launcher's alone */
  text_clear(complaint);
  return SIDE_SPAWNER;
}

static enum side launch_all(struct spawner *spawner, struct arguments *arguments, struct text *complaint) {
  for (;;) {
    struct request request;
    enum inbox_state state = inbox_take(&spawner->inbox, &request, complaint);
    if (state == INBOX_WAITS) return SIDE_SPAWNER;
    if (state == INBOX_BROKEN) return SIDE_BROKEN;
    enum side side = launch(spawner, &request, arguments, complaint);
    if (side == SIDE_LAUNCHER || side == SIDE_SENSELESS_LAUNCHER) return side; /* and the request is its own */
    request_free(&request);
    if (side == SIDE_BROKEN) return side;
  }
}

static void hear_signals(int signal_fd) {
  struct signalfd_siginfo info;
  while (read(signal_fd, &info, sizeof info) == (ssize_t)sizeof info) continue;
}

bool spawner_run(char **argv, struct arguments *arguments, struct text *complaint) {
  /* Not on the stack, so that a checker for leaks finds what it holds in every process. */
  static struct spawner spawner;
  if (!begin(&spawner, argv, complaint)) return false;
  for (;;) {
    int tell_in_ms = fleet_tell_in_ms(&spawner.fleet);
    bool is_pipe_full = tell_in_ms == 0; /* or it would have been told */
    struct pollfd events[] = {
      {.fd = spawner.inbox.fd, .events = POLLIN},
      {.fd = spawner.signal_fd, .events = POLLIN},
      {.fd = is_pipe_full ? spawner.fleet.notify_fd : ABSENT, .events = POLLOUT},
    };
    if (poll(events, sizeof events / sizeof events[0], is_pipe_full ? -1 : tell_in_ms) < 0) continue;
    if (events[1].revents != 0) {
      hear_signals(spawner.signal_fd);
      fleet_reap(&spawner.fleet);
    }
    if (events[0].revents != 0) {
      enum inbox_state state = inbox_read(&spawner.inbox, complaint);
      if (state == INBOX_ENDED || state == INBOX_BROKEN) return false;
      enum side side = launch_all(&spawner, arguments, complaint);
      if (side != SIDE_SPAWNER) return side == SIDE_LAUNCHER;
    }
    if (fleet_tell_in_ms(&spawner.fleet) == 0) fleet_tell(&spawner.fleet);
  }
}
