#include "keeper.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "baits.h"

#define MAX_LISTENERS (MAX_PATHS + 2)
#define SHARED_BYTES 4096

struct keeper {
  const char *secret;
  struct pollfd polled[MAX_LISTENERS + 1];
  char baits[MAX_LISTENERS + 1][sizeof(struct sockaddr_un) + 16];
  bool is_touched[MAX_LISTENERS + 1];
  nfds_t count;
};

/* Listens, and prints the bait. One that cannot be laid out here is left out: what needs it does not apply then. */
static void listen_on(struct keeper *keeper, int fd, const char *kind, const char *value) {
  if (fd < 0 || keeper->count > MAX_LISTENERS) return;
  if (listen(fd, 1) != 0) {
    close(fd);
    return;
  }
  keeper->polled[keeper->count] = (struct pollfd){.fd = fd, .events = POLLIN};
  snprintf(keeper->baits[keeper->count], sizeof keeper->baits[0], "%s=%s", kind, value);
  puts(keeper->baits[keeper->count++]);
}

static int bound_socket(const struct sockaddr *address, socklen_t length) {
  int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && bind(fd, address, length) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

static void listen_tcp(struct keeper *keeper) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
  socklen_t length = sizeof address;
  int fd = bound_socket((struct sockaddr *)&address, length);
  char port[8] = "";
  if (fd >= 0 && getsockname(fd, (struct sockaddr *)&address, &length) == 0)
    snprintf(port, sizeof port, "%u", (unsigned)ntohs(address.sin_port));
  listen_on(keeper, fd, "tcp", port);
}

static void listen_abstract(struct keeper *keeper) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "taskmill-escape-%d", getpid());
  socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
  listen_on(keeper, bound_socket((struct sockaddr *)&address, size), "abstract", address.sun_path + 1);
}

static void listen_path(struct keeper *keeper, const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) return;
  strcpy(address.sun_path, path);
  listen_on(keeper, bound_socket((struct sockaddr *)&address, sizeof address), "unix", path);
}

static void accept_one(struct keeper *keeper, nfds_t i) {
  int fd = accept(keeper->polled[i].fd, NULL, NULL);
  if (fd < 0) return;
  keeper->is_touched[i] = true;
  send(fd, keeper->secret, strlen(keeper->secret), MSG_NOSIGNAL);
  close(fd);
}

/* Until whoever started us closes our standard input, or is gone. */
static void wait_for_end(struct keeper *keeper) {
  char byte;
  for (;;) {
    if (poll(keeper->polled, keeper->count, -1) < 0) continue;
    for (nfds_t i = 1; i < keeper->count; i++)
      if ((keeper->polled[i].revents & POLLIN) != 0) accept_one(keeper, i);
    if (keeper->polled[0].revents != 0 && read(STDIN_FILENO, &byte, 1) <= 0) return;
  }
}

int keep_baits(char **socket_paths) {
  static struct keeper keeper;
  const char *secret = getenv("TASKMILL_PLANTED");
  keeper.secret = secret == NULL ? "" : secret;
  setsid(); /* by its session it is told apart from what an attempt starts */
  keeper.polled[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
  keeper.count = 1;
  listen_abstract(&keeper);
  listen_tcp(&keeper);
  for (char **path = socket_paths; *path != NULL; path++) listen_path(&keeper, *path);

  char queue_name[32];
  snprintf(queue_name, sizeof queue_name, "/taskmill-escape-%d", getpid());
  mqd_t queue = mq_open(queue_name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0666, NULL);
  bool has_queue = queue >= 0 && mq_send(queue, keeper.secret, strlen(keeper.secret), 0) == 0;
  if (has_queue) printf("mqueue=%s\n", queue_name);
  key_t key = (key_t)(0x7a000000 + getpid());
  int shm = shmget(key, SHARED_BYTES, IPC_CREAT | IPC_EXCL | 0666);
  char *shared = shm < 0 ? (char *)-1 : shmat(shm, NULL, 0);
  if (shared != (char *)-1) {
    snprintf(shared, SHARED_BYTES, "%s", keeper.secret);
    printf("shm=%d\n", key);
  }
  printf("pid=%d\n\n", getpid());
  fflush(stdout);

  wait_for_end(&keeper);
  if (has_queue) mq_unlink(queue_name);
  if (shm >= 0) shmctl(shm, IPC_RMID, NULL);
  for (char **path = socket_paths; *path != NULL; path++) unlink(*path);
  for (nfds_t i = 1; i < keeper.count; i++)
    if (keeper.is_touched[i]) puts(keeper.baits[i]);
  return 0;
}
