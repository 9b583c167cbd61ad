#include "supervise/relay.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/arguments.h"
#include "base/clock.h"

/* Read at a time, and kept by a flow that cannot write. */
#define CHUNK_BYTES 65536

/* Descriptors beside those of connections: epoll, the listeners, one connection too many, and what is being made. */
#define OTHER_DESCRIPTORS 16

#define EVENTS_AT_ONCE 64

/* How long no connection is accepted after the service had no room in its queue, or the kernel no memory. */
#define PAUSE_US 5000

const unsigned int RELAY_CALLS[] = {
  SYS_epoll_pwait, SYS_epoll_ctl, SYS_accept4,  SYS_socket, SYS_connect,       SYS_recvfrom,
  SYS_sendto,      SYS_shutdown,  SYS_close,    SYS_madvise, SYS_clock_gettime, SYS_exit_group,
};
const size_t RELAY_CALL_COUNT = sizeof RELAY_CALLS / sizeof RELAY_CALLS[0];

enum side { CLIENT, SERVICE, SIDES };

/* From one side to the other. */
struct flow {
  /* What was read and not written: `length` bytes of the kept chunk, from `at`. */
  uint32_t at;
  uint32_t length;
  /* Nothing more is read. */
  bool is_ended;
  /* The receiver was told, or has gone. */
  bool is_done;
};

struct connection {
  int fds[SIDES];
  /* The events that epoll watches; with none, it does not know the descriptor. */
  uint32_t watched[SIDES];
  /* By the side that is read. */
  struct flow flows[SIDES];
  /* A chunk of it was used. */
  bool has_kept;
  /* While it is free: the next one that is. */
  int next_free;
};

static struct relay {
  int epoll_fd;
  int listeners[2];
  int listener_count;
  struct sockaddr_un service;
  socklen_t service_length;
  /* When to accept connections again; 0 while they are. */
  int64_t resume_us;
  int first_free;
  struct connection connections[MAX_CONNECTIONS];
  /* Two chunks for each connection. They take memory once they are used. */
  char *kept;
  char chunk[CHUNK_BYTES];
} relay;

/* Events carry the connection and the side, or a listener below zero. */
static bool watch(int operation, int fd, uint32_t events, int64_t what) {
  struct epoll_event event = {.events = events, .data.u64 = (uint64_t)what};
  return epoll_ctl(relay.epoll_fd, operation, fd, &event) == 0;
}

static char *kept_by(const struct connection *connection, enum side from) {
  return relay.kept + ((connection - relay.connections) * SIDES + (ptrdiff_t)from) * CHUNK_BYTES;
}

static enum side other(enum side side) { return side == CLIENT ? SERVICE : CLIENT; }

/* The limit of the kernel decides how many connections there can be. */
static int connections_allowed(void) {
  struct rlimit limit;
  rlim_t wanted = (rlim_t)MAX_CONNECTIONS * SIDES + OTHER_DESCRIPTORS;
  struct rlimit raised = {wanted, wanted};
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) return MAX_CONNECTIONS;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  limit.rlim_cur = limit.rlim_max; /* below what is wanted */
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur <= OTHER_DESCRIPTORS) return 0;
  return (int)((limit.rlim_cur - OTHER_DESCRIPTORS) / SIDES);
}

bool relay_prepare(const int *listeners, int count, const char *name) {
  int allowed = connections_allowed();
  for (int i = 0; i < allowed; i++) relay.connections[i].next_free = i + 1 < allowed ? i + 1 : ABSENT;
  relay.first_free = allowed > 0 ? 0 : ABSENT;
  relay.service.sun_family = AF_UNIX;
  memcpy(relay.service.sun_path, name, strlen(name));
  relay.service_length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name) + 1);
  size_t bytes = (size_t)MAX_CONNECTIONS * SIDES * CHUNK_BYTES;
  relay.kept = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (relay.kept == MAP_FAILED) return false;
  relay.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  relay.listener_count = count;
  for (int i = 0; i < count; i++) {
    relay.listeners[i] = listeners[i];
    if (!watch(EPOLL_CTL_ADD, listeners[i], EPOLLIN, ABSENT - i)) return false;
  }
  return relay.epoll_fd >= 0;
}

static void accept_from(bool is_open) {
  relay.resume_us = is_open ? 0 : monotonic_us() + PAUSE_US;
  for (int i = 0; i < relay.listener_count; i++)
    watch(EPOLL_CTL_MOD, relay.listeners[i], is_open ? EPOLLIN : 0, ABSENT - i);
}

static void end(struct connection *connection) {
  for (int side = 0; side < SIDES; side++) close(connection->fds[side]);
  if (connection->has_kept) madvise(kept_by(connection, CLIENT), (size_t)SIDES * CHUNK_BYTES, MADV_DONTNEED);
  connection->fds[CLIENT] = ABSENT;
  connection->next_free = relay.first_free;
  relay.first_free = (int)(connection - relay.connections);
}

/* Writes as much as the receiver takes. False if it takes no more, ever. */
static bool write_to(int fd, const char *bytes, size_t length, size_t *written) {
  ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
  *written = sent < 0 ? 0 : (size_t)sent;
  return sent >= 0 || errno == EAGAIN || errno == EINTR || errno == ENOBUFS;
}

/* A receiver that has gone. */
static void drop(struct flow *flow) { *flow = (struct flow){.is_ended = true, .is_done = true}; }

/* Writes what was kept. */
static void flush(struct connection *connection, enum side from) {
  struct flow *flow = &connection->flows[from];
  size_t written;
  if (!write_to(connection->fds[other(from)], kept_by(connection, from) + flow->at, flow->length, &written)) drop(flow);
  else {
    flow->at += (uint32_t)written;
    flow->length -= (uint32_t)written;
  }
}

/* Reads once, writes at once, keeps the rest. False if the sender has failed. */
static bool transfer(struct connection *connection, enum side from) {
  struct flow *flow = &connection->flows[from];
  ssize_t got = recv(connection->fds[from], relay.chunk, sizeof relay.chunk, MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  size_t written = 0;
  flow->is_ended = got == 0;
  if (got == 0) return true;
  if (!write_to(connection->fds[other(from)], relay.chunk, (size_t)got, &written)) drop(flow);
  else if (written < (size_t)got) {
    *flow = (struct flow){.length = (uint32_t)((size_t)got - written)};
    memcpy(kept_by(connection, from), relay.chunk + written, flow->length);
    connection->has_kept = true;
  }
  return true;
}

/* False if the connection is over. */
static bool move(struct connection *connection, enum side from) {
  struct flow *flow = &connection->flows[from];
  if (flow->length > 0) flush(connection, from);
  else if (!flow->is_ended && !transfer(connection, from)) return false;
  if (!flow->is_ended || flow->length > 0 || flow->is_done) return true;
  flow->is_done = true;
  return shutdown(connection->fds[other(from)], SHUT_WR) == 0;
}

/*
 * A descriptor that nothing is wanted of is not watched: epoll reports the end of its peer whether that is wanted or not,
 * again and again.
 */
static bool watch_side(struct connection *connection, enum side side) {
  const struct flow *reading = &connection->flows[side], *writing = &connection->flows[other(side)];
  uint32_t events = (!reading->is_ended && reading->length == 0 ? EPOLLIN : 0U) | (writing->length > 0 ? EPOLLOUT : 0U);
  uint32_t watched = connection->watched[side];
  if (events == watched) return true;
  connection->watched[side] = events;
  int operation = events == 0 ? EPOLL_CTL_DEL : watched == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  return watch(operation, connection->fds[side], events, (connection - relay.connections) * SIDES + (int64_t)side);
}

static void handle(struct connection *connection) {
  if (connection->fds[CLIENT] == ABSENT) return; /* it ended by an earlier event */
  bool goes_on = move(connection, CLIENT) && move(connection, SERVICE) &&
                 !(connection->flows[CLIENT].is_done && connection->flows[SERVICE].is_done) &&
                 watch_side(connection, CLIENT) && watch_side(connection, SERVICE);
  if (!goes_on) end(connection);
}

/* A connection to the service; ABSENT with errno. */
static int call_service(void) {
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, (const struct sockaddr *)&relay.service, relay.service_length) == 0) return fd;
  int error = errno;
  close(fd);
  errno = error;
  return ABSENT;
}

static bool is_passing(int error) {
  return error == EAGAIN || error == ENFILE || error == EMFILE || error == ENOMEM || error == ENOBUFS;
}

/* The service is called first: while it has no room in its queue, clients wait in that of the listener. */
static void accept_one(int listener) {
  int service_fd = relay.first_free == ABSENT ? ABSENT : call_service();
  if (service_fd == ABSENT && relay.first_free != ABSENT && is_passing(errno)) {
    accept_from(false);
    return;
  }
  int client_fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (client_fd < 0 && is_passing(errno) && errno != EAGAIN) accept_from(false);
  if (client_fd < 0 || service_fd < 0) {
    if (client_fd >= 0) close(client_fd);
    if (service_fd >= 0) close(service_fd);
    return;
  }
  struct connection *connection = &relay.connections[relay.first_free];
  relay.first_free = connection->next_free;
  *connection = (struct connection){.fds = {client_fd, service_fd}};
  handle(connection);
}

void relay_run(void) {
  struct epoll_event events[EVENTS_AT_ONCE];
  int count;
  do {
    int timeout_ms = ms_until(relay.resume_us == 0 ? NEVER : relay.resume_us);
    count = epoll_pwait(relay.epoll_fd, events, EVENTS_AT_ONCE, timeout_ms, NULL);
    if (relay.resume_us != 0 && monotonic_us() >= relay.resume_us) accept_from(true);
    for (int i = 0; i < count; i++) {
      int64_t what = (int64_t)events[i].data.u64;
      if (what < 0) accept_one(relay.listeners[ABSENT - what]);
      else handle(&relay.connections[what / SIDES]);
    }
  } while (count >= 0 || errno == EINTR);
}
