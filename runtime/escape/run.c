#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Milliseconds between two looks at whether the process of an attempt has ended. */
#define LOOK_MS 20

/* Looks for a free process: those of an attempt before, which are just ending, count too. */
#define FORK_TRIES 250

static pid_t fork_patiently(void) {
  for (int tries = 1;; tries++) {
    pid_t pid = fork();
    if (pid >= 0 || errno != EAGAIN || tries == FORK_TRIES) return pid;
    nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000}, NULL);
  }
}

static void attempt_in_child(const struct attempt *attempt, const struct baits *baits, int answer_fd) {
  setpgid(0, 0);
  struct result result = attempt->run(baits);
  if (write(answer_fd, &result, sizeof result) != (ssize_t)sizeof result) _exit(1);
  _exit(0);
}

static struct result result_of_ending(const struct attempt *attempt, bool has_ended, int status) {
  char detail[DETAIL_BYTES];
  if (!has_ended) {
    snprintf(detail, sizeof detail, "no answer within %d ms", ATTEMPT_LIMIT_MS);
    return opened(detail);
  }
  if (!WIFSIGNALED(status)) {
    snprintf(detail, sizeof detail, "no answer, exit code %d", WEXITSTATUS(status));
    return opened(detail);
  }
  int number = WTERMSIG(status);
  bool is_deadly = number == SIGSYS || (attempt->deadly_signals >> number & 1) != 0;
  snprintf(detail, sizeof detail, is_deadly ? "ended by %s" : "no answer, ended by %s", strsignal(number));
  return is_deadly ? blocked(detail) : opened(detail);
}

static struct result wait_for_answer(const struct attempt *attempt, pid_t pid, int answer_fd) {
  struct result result;
  struct pollfd answer = {.fd = answer_fd, .events = POLLIN};
  int status = 0;
  bool has_ended = false;
  for (int waited_ms = 0; waited_ms < ATTEMPT_LIMIT_MS; waited_ms += LOOK_MS) {
    bool is_told = poll(&answer, 1, has_ended ? 0 : LOOK_MS) > 0;
    if (is_told && (answer.revents & POLLIN) != 0 && read(answer_fd, &result, sizeof result) == (ssize_t)sizeof result) {
      result.detail[DETAIL_BYTES - 1] = '\0';
      return result;
    }
    if (has_ended) break; /* it ended, and had said nothing at that time */
    /* Nobody has the other end any more: it is about to end. */
    has_ended = waitpid(pid, &status, is_told ? 0 : WNOHANG) == pid;
  }
  return result_of_ending(attempt, has_ended, status);
}

struct result attempt_run(const struct attempt *attempt, const struct baits *baits) {
  int answer[2];
  pid_t pid = -1;
  if (pipe2(answer, O_CLOEXEC) == 0) {
    pid = fork_patiently();
    int error = errno;
    if (pid == 0) attempt_in_child(attempt, baits, answer[1]);
    close(answer[1]);
    if (pid < 0) close(answer[0]);
    errno = error;
  }
  if (pid < 0) {
    char detail[DETAIL_BYTES];
    snprintf(detail, sizeof detail, "not tried: %s", strerror(errno));
    return opened(detail);
  }
  setpgid(pid, pid);
  struct result result = wait_for_answer(attempt, pid, answer[0]);
  close(answer[0]);
  kill(-pid, SIGKILL);
  kill(pid, SIGKILL);
  while (waitpid(-1, NULL, WNOHANG) > 0 || waitpid(pid, NULL, 0) == pid) continue;
  return result;
}
