#include "supervise/init.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/children.h"
#include "base/clock.h"
#include "base/descriptors.h"

bool init_channel(int *ours, int *theirs) {
  int ends[2];
  int yes = 1;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return false;
  *ours = ends[0];
  *theirs = ends[1];
  return setsockopt(*ours, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) == 0;
}

bool init_say(int fd, struct init_word word) {
  return send(fd, &word, sizeof word, MSG_NOSIGNAL) == (ssize_t)sizeof word;
}

struct init {
  pid_t task;
  int fd;
  bool has_task_ended;
  int64_t leftovers;
};

static void note(struct init *init, pid_t pid, int status) {
  if (pid == init->task) {
    init->has_task_ended = true;
    init_say(init->fd, (struct init_word){.kind = INIT_ENDED, .status = status});
    kill(-1, SIGKILL);
  } else if (init->has_task_ended && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
    init->leftovers++;
  }
}

/* Reaps ended children; with `may_wait`, all of them. False if no child is left. */
static bool reap(struct init *init, bool may_wait) {
  int status;
  pid_t pid;
  while ((pid = child_reap(&status, may_wait)) > 0) note(init, pid, status);
  return pid == 0;
}

/*
 * Only signals from outside are passed on. A sender outside has no pid in here. A sender inside may claim that (sigqueue), but
 * not that it called kill().
 */
static bool is_from_outside(const siginfo_t *info) { return info->si_code == SI_USER && info->si_pid == 0; }

_Noreturn void init_run(pid_t task, int fd) {
  struct init init = {.task = task, .fd = fd};
  setsid();
  descriptors_keep_only(fd);
  sigset_t all;
  sigfillset(&all);
  while (!init.has_task_ended && reap(&init, false)) {
    siginfo_t info;
    int signal = init.has_task_ended ? 0 : sigwaitinfo(&all, &info);
    if (signal > 0 && signal != SIGCHLD && is_from_outside(&info)) kill(-1, signal);
  }
  while (reap(&init, true)) continue;
  init_say(fd, (struct init_word){.kind = INIT_DONE, .leftovers = init.leftovers, .usage = usage_of_children()});
  _exit(0);
}

/* Receives a word and the pid of its sender. False at the end of the stream, too. */
static bool receive(int fd, int flags, struct init_word *word, pid_t *from) {
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(struct ucred))];
  } control;
  struct iovec part = {.iov_base = word, .iov_len = sizeof *word};
  struct msghdr message = {
    .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
  ssize_t got;
  while ((got = recvmsg(fd, &message, flags | MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) continue;
  if (got == 0) errno = ESRCH;
  if (got != (ssize_t)sizeof *word) return false;
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (header == NULL || header->cmsg_type != SCM_CREDENTIALS) return false;
  struct ucred credentials;
  memcpy(&credentials, CMSG_DATA(header), sizeof credentials);
  *from = credentials.pid;
  return true;
}

bool init_await_task(int fd, int end_fd, int timeout_ms, pid_t *task) {
  struct pollfd events[] = {{.fd = fd, .events = POLLIN}, {.fd = end_fd, .events = POLLIN}};
  int ready = poll(events, sizeof events / sizeof events[0], timeout_ms);
  if (ready == 0) errno = ETIMEDOUT;
  if (ready > 0 && events[0].revents == 0) errno = EINTR;
  if (ready <= 0 || events[0].revents == 0) return false;
  struct init_word word;
  errno = ESRCH;
  return receive(fd, 0, &word, task) && word.kind == INIT_BEGINS;
}

bool init_hear(int fd, struct init_word *word, bool *is_gone) {
  pid_t from;
  bool is_heard = receive(fd, MSG_DONTWAIT, word, &from);
  *is_gone = !is_heard && errno == ESRCH;
  return is_heard;
}
