/* Who can be spoken to: sockets of the host by name, by path and by port, its shared memory and its queues. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "sockets.h"

#define AF_VSOCK_NUMBER 40

/* Seconds without another byte of an answer. */
#define ANSWER_SECONDS 3

static int call(const struct sockaddr *address, socklen_t length, int type) {
  int fd = socket(address->sa_family, type | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, address, length) == 0) return fd;
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

int call_abstract(const char *name) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  size_t length = strlen(name);
  memcpy(address.sun_path + 1, name, length < sizeof address.sun_path ? length : sizeof address.sun_path - 1);
  return call((struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length), SOCK_STREAM);
}

int call_loopback(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
  return call((struct sockaddr *)&address, sizeof address, SOCK_STREAM);
}

int call_path(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  errno = ENAMETOOLONG;
  if (strlen(path) >= sizeof address.sun_path) return -1;
  strcpy(address.sun_path, path);
  return call((struct sockaddr *)&address, sizeof address, SOCK_STREAM);
}

size_t read_until_end(int fd, char *answer, size_t size) {
  struct timeval patience = {.tv_sec = ANSWER_SECONDS};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  size_t length = 0;
  for (ssize_t got; length < size && (got = recv(fd, answer + length, size - length, 0)) > 0;) length += (size_t)got;
  return length;
}

static struct result called(int fd) {
  struct result result = judged(fd);
  if (fd >= 0) close(fd);
  return result;
}

static struct result connect_abstract(const struct baits *baits) {
  return baits->abstract_name == NULL ? not_applicable("nobody listens on the host") : called(call_abstract(baits->abstract_name));
}

static struct result connect_tcp(const struct baits *baits) {
  return baits->tcp_port == 0 ? not_applicable("nobody listens on the host") : called(call_loopback(baits->tcp_port));
}

#define REQUEST_BODY "{\"execution\":{\"kind\":\"command\",\"program\":\"true\"},\"sandbox\":{\"profile\":\"process\"}}"

/* What stands for the service answers every request. To have connected is enough: what it says is for people. */
static struct result ask_service(const struct baits *baits) {
  if (baits->service_port == 0) return not_applicable("nobody stands for the service");
  int fd = call_loopback(baits->service_port);
  if (fd < 0) return refused();
  dprintf(fd,
          "POST /api/v1/tasks HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
          "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
          sizeof REQUEST_BODY - 1, REQUEST_BODY);
  char answer[16] = "";
  bool is_taken = read(fd, answer, sizeof answer - 1) > 0 && strncmp(answer, "HTTP/1.1 200", 12) == 0;
  return opened(is_taken ? "it was accepted" : "it got a connection");
}

/* Somewhere else: an address that is nobody's (TEST-NET-1). Datagrams need a route, and send nothing yet. */
static struct result reach_out(const struct baits *baits) {
  if (baits->tcp_port == 0) return not_applicable("nobody listens on the host");
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr = {.s_addr = htonl(0xC0000201)}};
  return called(call((struct sockaddr *)&address, sizeof address, SOCK_DGRAM));
}

static struct result connect_path(const char *path) {
  struct result result = called(call_path(path));
  return result.verdict == OPEN ? opened(path) : result;
}

static struct result connect_baits(const struct baits *baits) {
  if (baits->sockets.count == 0) return not_applicable("no socket was laid out");
  struct result result = blocked("");
  for (size_t i = 0; i < baits->sockets.count && result.verdict == BLOCKED; i++)
    result = connect_path(baits->sockets.list[i]);
  return result;
}

/* Those who do whatever they are asked to. Nothing is said to them. */
static struct result connect_services(const struct baits *baits) {
  (void)baits;
  static const char *const PATHS[] = {
    "/run/docker.sock",        "/var/run/docker.sock",      "/run/containerd/containerd.sock", "/run/podman/podman.sock",
    "/run/systemd/private",    "/run/dbus/system_bus_socket", "/run/crio/crio.sock",           "/run/snapd.socket",
    "/run/libvirt/libvirt-sock", "/tmp/.X11-unix/X0",       "/run/systemd/journal/stdout",
  };
  struct result result = blocked("there is none");
  for (size_t i = 0; i < COUNT_OF(PATHS) && result.verdict == BLOCKED; i++) {
    struct result next = connect_path(PATHS[i]);
    if (next.verdict == OPEN || errno != ENOENT) result = next;
  }
  return result;
}

static struct result connect_user_bus(const struct baits *baits) {
  (void)baits;
  static const char *const NAMES[] = {"bus", "wayland-0", "gnupg/S.gpg-agent", "docker.sock", "podman/podman.sock",
                                      "systemd/private"};
  struct result result = blocked("there is none");
  for (size_t i = 0; i < COUNT_OF(NAMES) && result.verdict == BLOCKED; i++) {
    char path[96];
    snprintf(path, sizeof path, "/run/user/%u/%s", (unsigned)geteuid(), NAMES[i]);
    struct result next = connect_path(path);
    if (next.verdict == OPEN || errno != ENOENT) result = next;
  }
  return result;
}

static struct result make_socket(int family, int type, int protocol) {
  return called(socket(family, type | SOCK_CLOEXEC, protocol));
}

static struct result raw_socket(const struct baits *baits) {
  (void)baits;
  struct result result = make_socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
  return result.verdict == OPEN ? result : make_socket(AF_PACKET, SOCK_RAW, 0);
}

/* To the machine around this one, past every network namespace. Nobody is called. */
static struct result machine_socket(const struct baits *baits) {
  (void)baits;
  return make_socket(AF_VSOCK_NUMBER, SOCK_STREAM, 0);
}

static struct result share_memory(const struct baits *baits) {
  if (baits->shm_key == 0) return not_applicable("no shared memory was laid out");
  return judged(shmget(baits->shm_key, 0, 0));
}

static struct result read_queue(const struct baits *baits) {
  if (baits->queue_name == NULL) return not_applicable("no queue was laid out");
  return judged(mq_open(baits->queue_name, O_RDONLY | O_CLOEXEC));
}

static const struct attempt LIST[] = {
  {"connect_abstract", "connects to an abstract socket of the host", connect_abstract, 0, false},
  {"connect_loopback", "connects to the host's 127.0.0.1", connect_tcp, 0, false},
  {"ask_service", "asks taskmill's own API for a task without a sandbox", ask_service, 0, false},
  {"network_route", "has a way to other machines", reach_out, 0, false},
  {"connect_hidden", "connects to sockets in hidden directories", connect_baits, 0, false},
  {"connect_services", "connects to docker, containerd, systemd and the like", connect_services, 0, false},
  {"connect_user_services", "connects to the bus and the agents of the user", connect_user_bus, 0, false},
  {"raw_socket", "makes packets of its own", raw_socket, 0, false},
  {"vsock", "makes a socket to the machine around this one", machine_socket, 0, false},
  {"shared_memory", "opens shared memory of the host", share_memory, 0, false},
  {"message_queue", "opens a message queue of the host", read_queue, 0, false},
};

const struct attempts socket_attempts = ATTEMPTS_OF(LIST);
