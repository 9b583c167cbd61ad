/* Taking more than it may have. Each goes a little past what the sandbox was said to limit, and no further. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attempt.h"

/* Bytes that are taken at a time. */
#define STEP_BYTES (1L << 20)

/* How far past a limit of bytes it goes. */
#define SURPLUS_BYTES (16L << 20)

/* Processes that are started past the limit. */
#define SURPLUS_PROCESSES 8

/* Connections that are filled, at most: each holds megabytes where nothing limits them, and a little where something does. */
#define MAX_CONNECTIONS 64

#define FILE_NAME "taskmill-escape-file"

#define BY_KERNEL (1UL << SIGKILL | 1UL << SIGBUS)

static struct result storm(const struct baits *baits) {
  if (baits->pids_max == 0) return not_applicable("the number of processes is not limited");
  long started = 0;
  for (; started < baits->pids_max + SURPLUS_PROCESSES; started++) {
    pid_t pid = fork();
    if (pid == 0) {
      pause();
      _exit(0);
    }
    if (pid < 0) break;
  }
  char detail[DETAIL_BYTES];
  snprintf(detail, sizeof detail, "%ld processes", started);
  struct result result = started > baits->pids_max ? opened(detail) : blocked(detail);
  signal(SIGTERM, SIG_IGN);
  kill(0, SIGTERM);
  while (waitpid(-1, NULL, 0) > 0) continue;
  return result;
}

static struct result taken(long bytes, long limit_bytes) {
  char detail[DETAIL_BYTES];
  snprintf(detail, sizeof detail, "%ld MiB", bytes / STEP_BYTES);
  return bytes > limit_bytes ? opened(detail) : blocked(detail);
}

/* Writes to a file in memory until that is refused, or past the limit. */
static long fill(int fd, long limit_bytes) {
  static char bytes[STEP_BYTES];
  memset(bytes, 1, sizeof bytes);
  long written = 0;
  while (written < limit_bytes + SURPLUS_BYTES) {
    ssize_t got = write(fd, bytes, sizeof bytes);
    if (got <= 0) break;
    written += got;
  }
  return written;
}

/* All at once, so that nothing is taken where that is too much. */
static struct result fill_directory(const char *directory, long limit_bytes) {
  if (limit_bytes == 0) return not_applicable("its size is not limited");
  char path[64];
  snprintf(path, sizeof path, "%s/" FILE_NAME, directory);
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return refused();
  unlink(path);
  if (fallocate(fd, 0, 0, limit_bytes + SURPLUS_BYTES) == 0) return opened("it worked");
  return errno == EOPNOTSUPP ? taken(fill(fd, limit_bytes), limit_bytes) : refused();
}

static struct result fill_tmp(const struct baits *baits) { return fill_directory("/tmp", baits->tmp_bytes); }

static struct result fill_shm(const struct baits *baits) { return fill_directory("/dev/shm", baits->shm_bytes); }

/* Where the group has no limit on memory there is nothing to go past. */
#define NEEDS_MEMORY_LIMIT                                                                                             \
  if (baits->memory_bytes == 0) return not_applicable("memory is not limited by a control group")

static struct result allocate(const struct baits *baits) {
  NEEDS_MEMORY_LIMIT;
  size_t size = (size_t)(baits->memory_bytes + SURPLUS_BYTES);
  char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (bytes == MAP_FAILED) return refused();
  for (size_t at = 0; at < size; at += 4096) ((volatile char *)bytes)[at] = 1;
  return taken((long)size, baits->memory_bytes);
}

static struct result hide_in_memfd(const struct baits *baits) {
  NEEDS_MEMORY_LIMIT;
  int fd = memfd_create("taskmill-escape", MFD_CLOEXEC);
  return fd < 0 ? refused() : taken(fill(fd, baits->memory_bytes), baits->memory_bytes);
}

/* Several file systems in memory, none of them past its own limit. */
static struct result hide_in_files(const struct baits *baits) {
  NEEDS_MEMORY_LIMIT;
  static const char *const DIRECTORIES[] = {"/tmp/" FILE_NAME, "/dev/shm/" FILE_NAME};
  long bytes = 0;
  for (size_t i = 0; i < COUNT_OF(DIRECTORIES); i++) {
    int fd = open(DIRECTORIES[i], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) continue;
    unlink(DIRECTORIES[i]);
    bytes += fill(fd, baits->memory_bytes - bytes);
  }
  int fd = memfd_create("taskmill-escape", MFD_CLOEXEC);
  if (fd >= 0) bytes += fill(fd, baits->memory_bytes - bytes);
  return taken(bytes, baits->memory_bytes);
}

/* A socket that listens on loopback, in whatever network we are; -1 with errno. */
static int listen_here(struct sockaddr_in *address) {
  *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
  socklen_t length = sizeof *address;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool listens = fd >= 0 && bind(fd, (struct sockaddr *)address, length) == 0 && listen(fd, 1) == 0 &&
                 getsockname(fd, (struct sockaddr *)address, &length) == 0;
  return listens ? fd : -1;
}

/* What one end takes that nobody reads at the other. */
static long fill_socket(int fd, long at_most) {
  static char bytes[STEP_BYTES];
  long sent = 0;
  ssize_t got;
  while (sent < at_most && (got = send(fd, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL)) > 0) sent += got;
  return sent;
}

static struct result hide_in_sockets(const struct baits *baits) {
  NEEDS_MEMORY_LIMIT;
  struct sockaddr_in address;
  int listener = listen_here(&address);
  if (listener < 0) return refused();
  /* Of what each socket may have in any case, all of them have less than that. */
  long limit_bytes = baits->memory_bytes + SURPLUS_BYTES;
  long bytes = 0;
  for (int i = 0; i < MAX_CONNECTIONS && bytes <= limit_bytes; i++) {
    int near_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (near_fd < 0 || connect(near_fd, (struct sockaddr *)&address, sizeof address) != 0) break;
    int far_fd = accept(listener, NULL, NULL);
    if (far_fd < 0) break;
    bytes += fill_socket(near_fd, limit_bytes + 1 - bytes) + fill_socket(far_fd, limit_bytes + 1 - bytes);
  }
  return taken(bytes, limit_bytes);
}

static const struct attempt LIST[] = {
  {"fork_storm", "starts more processes than it may", storm, 0, false},
  {"fill_tmp", "writes more to /tmp than it may", fill_tmp, BY_KERNEL, false},
  {"fill_shm", "writes more to /dev/shm than it may", fill_shm, BY_KERNEL, false},
  {"memory", "uses more memory than it may", allocate, BY_KERNEL, true},
  {"memory_by_descriptor", "hides memory in a file without a name", hide_in_memfd, BY_KERNEL, true},
  {"memory_by_files", "hides memory in files of several places", hide_in_files, BY_KERNEL, true},
  {"memory_by_sockets", "hides memory in connections that nobody reads", hide_in_sockets, BY_KERNEL, true},
};

const struct attempts resource_attempts = ATTEMPTS_OF(LIST);
