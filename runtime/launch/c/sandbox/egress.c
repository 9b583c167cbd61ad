#include "sandbox/egress.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arguments.h"

/* Connections that wait for the forwarder. The kernel cuts it to net.core.somaxconn. */
#define BACKLOG 4096

#define MAX_DESCRIPTORS (2 + MAX_LISTENERS)

struct message {
  bool has_user;
  int listener_count;
};

/* Room for descriptors beside a message. */
union control {
  struct cmsghdr header;
  char bytes[CMSG_SPACE(MAX_DESCRIPTORS * sizeof(int))];
};

bool egress_channel(int *ours, int *theirs) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return false;
  *ours = ends[0];
  *theirs = ends[1];
  return true;
}

/* Accepted connections inherit the option: a relay that waited for full packets would delay short ones. */
static bool begin_listening(int fd, const struct sockaddr *address, socklen_t length) {
  int yes = 1;
  return setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) == 0 && bind(fd, address, length) == 0 &&
         listen(fd, BACKLOG) == 0;
}

static int listen_on(const struct sockaddr *address, socklen_t length) {
  int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0 || begin_listening(fd, address, length)) return fd;
  int error = errno;
  close(fd);
  errno = error;
  return ABSENT;
}

/* Only without IPv6, or with it switched off, there is a single one. */
static bool open_listeners(struct egress *egress, int port) {
  struct sockaddr_in v4 = {
    .sin_family = AF_INET, .sin_port = htons((in_port_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct sockaddr_in6 v6 = {
    .sin6_family = AF_INET6, .sin6_port = htons((in_port_t)port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  egress->listeners[0] = listen_on((const struct sockaddr *)&v4, sizeof v4);
  if (egress->listeners[0] < 0) return false;
  egress->listeners[1] = listen_on((const struct sockaddr *)&v6, sizeof v6);
  egress->listener_count = egress->listeners[1] < 0 ? 1 : 2;
  return egress->listener_count == 2 || errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL;
}

static bool open_namespaces(struct egress *egress, bool has_user) {
  egress->net_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  egress->user_fd = has_user ? open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC) : ABSENT;
  return egress->net_fd >= 0 && (!has_user || egress->user_fd >= 0);
}

static bool send_all(int channel_fd, const struct egress *egress) {
  int fds[MAX_DESCRIPTORS] = {egress->net_fd};
  size_t count = 1;
  if (egress->user_fd != ABSENT) fds[count++] = egress->user_fd;
  for (int i = 0; i < egress->listener_count; i++) fds[count++] = egress->listeners[i];
  struct message message = {.has_user = egress->user_fd != ABSENT, .listener_count = egress->listener_count};
  struct iovec part = {.iov_base = &message, .iov_len = sizeof message};
  union control control;
  memset(&control, 0, sizeof control);
  control.header = (struct cmsghdr){
    .cmsg_len = (socklen_t)CMSG_LEN(count * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
  memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
  struct msghdr header = {.msg_iov = &part,
                          .msg_iovlen = 1,
                          .msg_control = control.bytes,
                          .msg_controllen = (socklen_t)CMSG_SPACE(count * sizeof(int))};
  return sendmsg(channel_fd, &header, MSG_NOSIGNAL) == (ssize_t)sizeof message;
}

static void close_all(const struct egress *egress) {
  close(egress->net_fd);
  if (egress->user_fd != ABSENT) close(egress->user_fd);
  for (int i = 0; i < egress->listener_count; i++) close(egress->listeners[i]);
}

struct fault egress_hand_over(int channel_fd, int port, bool has_user) {
  struct egress egress;
  if (!open_listeners(&egress, port) || !open_namespaces(&egress, has_user) || !send_all(channel_fd, &egress))
    return fault_at(STEP_EGRESS);
  close_all(&egress);
  struct fault fault;
  ssize_t got;
  while ((got = recv(channel_fd, &fault, sizeof fault, 0)) < 0 && errno == EINTR) continue;
  close(channel_fd);
  return got == (ssize_t)sizeof fault ? fault : (struct fault){.step = STEP_EGRESS, .error = ESRCH};
}

bool egress_receive(int channel_fd, struct egress *egress) {
  struct message message;
  struct iovec part = {.iov_base = &message, .iov_len = sizeof message};
  union control control;
  struct msghdr header = {
    .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
  ssize_t got;
  while ((got = recvmsg(channel_fd, &header, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) continue;
  struct cmsghdr *rights = got == (ssize_t)sizeof message ? CMSG_FIRSTHDR(&header) : NULL;
  if (rights == NULL || rights->cmsg_type != SCM_RIGHTS || (header.msg_flags & MSG_CTRUNC) != 0) return false;
  int fds[MAX_DESCRIPTORS];
  size_t bytes = rights->cmsg_len - CMSG_LEN(0);
  if (bytes != (1 + (message.has_user ? 1U : 0U) + (size_t)message.listener_count) * sizeof(int)) return false;
  memcpy(fds, CMSG_DATA(rights), bytes);
  size_t at = 0;
  egress->net_fd = fds[at++];
  egress->user_fd = message.has_user ? fds[at++] : ABSENT;
  egress->listener_count = message.listener_count;
  for (int i = 0; i < egress->listener_count; i++) egress->listeners[i] = fds[at++];
  return true;
}

void egress_answer(int channel_fd, struct fault fault) { send(channel_fd, &fault, sizeof fault, MSG_NOSIGNAL); }
