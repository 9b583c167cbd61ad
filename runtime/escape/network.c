/* Ways to other machines, and to the host, that the network of a sandbox could leave. Nothing is sent to anybody real. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "attempt.h"
#include "network-proxy.h"

/* The size of `address`, or 0 if `text` is none. The C library reads every spelling of IPv4 that programs know. */
static socklen_t address_of(const char *text, int port, struct sockaddr_storage *address) {
  struct sockaddr_in *v4 = (struct sockaddr_in *)address;
  struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;
  memset(address, 0, sizeof *address);
  if (inet_aton(text, &v4->sin_addr) != 0) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons((uint16_t)port);
    return sizeof *v4;
  }
  if (inet_pton(AF_INET6, text, &v6->sin6_addr) != 1) return 0;
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons((uint16_t)port);
  if (IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)) v6->sin6_scope_id = 1;
  return sizeof *v6;
}

static struct result reach(const char *text, int port, int type) {
  struct sockaddr_storage address;
  socklen_t length = address_of(text, port, &address);
  if (length == 0) return opened("not tried: it is no address");
  int fd = socket(address.ss_family, type | SOCK_CLOEXEC, 0);
  if (fd < 0) return refused();
  int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &yes, sizeof yes);
  struct result result = connect(fd, (struct sockaddr *)&address, length) == 0 ? opened(text) : refused();
  close(fd);
  return result;
}

/* The first of them that is open. Datagrams need a route, and send nothing yet. */
static struct result reach_any(const char *const *texts, size_t count, int port, int type) {
  struct result result = blocked("");
  for (size_t i = 0; i < count && result.verdict == BLOCKED; i++) result = reach(texts[i], port, type);
  return result;
}

/* The service of clouds that gives away keys, spelled as `text`: past the proxy if there is one, and through it. */
static struct result metadata(const struct baits *baits, const char *text) {
  char plain[64] = "";
  size_t length = strlen(text);
  if (text[0] == '[') snprintf(plain, sizeof plain, "%.*s", (int)length - 2, text + 1);
  else snprintf(plain, sizeof plain, "%s", text);
  struct sockaddr_storage address;
  bool is_address = address_of(plain, 80, &address) != 0;
  if (!is_address && baits->proxy_port == 0) return not_applicable("nobody here looks for names");
  struct result result = is_address ? reach(plain, 80, SOCK_DGRAM) : blocked("");
  return result.verdict == OPEN || baits->proxy_port == 0 ? result : proxy_reaches(baits, text, 80);
}

#define METADATA(X)                                                                                                    \
  X(dotted, "169.254.169.254")                                                                                         \
  X(decimal, "2852039166")                                                                                             \
  X(octal, "0251.0376.0251.0376")                                                                                      \
  X(hexadecimal, "0xA9FEA9FE")                                                                                         \
  X(mixed, "0xa9.254.0251.254")                                                                                        \
  X(short, "169.254.43518")                                                                                            \
  X(mapped, "[::ffff:169.254.169.254]")                                                                                \
  X(mapped_hexadecimal, "[::ffff:a9fe:a9fe]")                                                                          \
  X(translated, "[64:ff9b::a9fe:a9fe]")                                                                                \
  X(tunneled, "[2002:a9fe:a9fe::1]")                                                                                   \
  X(v6, "[fd00:ec2::254]")                                                                                             \
  X(trailing_dot, "169.254.169.254.")                                                                                  \
  X(named, "metadata.google.internal")

#define METADATA_ATTEMPT(name, text)                                                                                   \
  static struct result metadata_##name(const struct baits *baits) { return metadata(baits, text); }
METADATA(METADATA_ATTEMPT)

static struct result loopback_spellings(const struct baits *baits) {
  static const char *const TEXTS[] = {"127.1", "0", "0x7f000001", "017700000001", "::1", "::ffff:127.0.0.1", "::"};
  if (baits->tcp_port == 0) return not_applicable("nobody listens on the host");
  return reach_any(TEXTS, COUNT_OF(TEXTS), baits->tcp_port, SOCK_STREAM);
}

static struct result private_routes(const struct baits *baits) {
  (void)baits;
  static const char *const TEXTS[] = {"10.0.0.1", "172.16.0.1", "172.17.0.1", "192.168.0.1", "100.64.0.1", "198.18.0.1"};
  return reach_any(TEXTS, COUNT_OF(TEXTS), 9, SOCK_DGRAM);
}

static struct result neighbours(const struct baits *baits) {
  (void)baits;
  static const char *const TEXTS[] = {"255.255.255.255", "224.0.0.251", "169.254.0.1"};
  return reach_any(TEXTS, COUNT_OF(TEXTS), 9, SOCK_DGRAM);
}

static struct result route_v6(const struct baits *baits) {
  (void)baits;
  static const char *const TEXTS[] = {"2001:db8::1", "fd00::1", "64:ff9b::c000:201"};
  return reach_any(TEXTS, COUNT_OF(TEXTS), 9, SOCK_DGRAM);
}

/* Whether a line of the file has `text`. */
static bool has_line(const char *path, const char *text) {
  char line[512];
  bool is_found = false;
  FILE *file = fopen(path, "re");
  while (file != NULL && !is_found && fgets(line, sizeof line, file) != NULL) is_found = strstr(line, text) != NULL;
  if (file != NULL) fclose(file);
  return is_found;
}

static struct result interfaces(const struct baits *baits) {
  (void)baits;
  struct if_nameindex *all = if_nameindex();
  struct result result = all == NULL ? refused() : blocked("there is only loopback");
  for (struct if_nameindex *at = all; at != NULL && at->if_index != 0 && result.verdict == BLOCKED; at++) {
    struct ifreq request = {.ifr_flags = 0};
    memcpy(request.ifr_name, at->if_name, strnlen(at->if_name, IFNAMSIZ - 1));
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is_up = ioctl(fd, SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & IFF_UP) != 0;
    if (is_up && (request.ifr_flags & IFF_LOOPBACK) == 0) result = opened(at->if_name);
    close(fd);
  }
  if (all != NULL) if_freenameindex(all);
  return result;
}

static struct result host_sockets(const struct baits *baits) {
  char port[24];
  if (baits->tcp_port == 0) return not_applicable("nobody listens on the host");
  snprintf(port, sizeof port, "0100007F:%04X ", (unsigned)baits->tcp_port);
  if (has_line("/proc/net/tcp", port)) return opened("a port");
  return baits->abstract_name != NULL && has_line("/proc/net/unix", baits->abstract_name) ? opened("a name")
                                                                                            : blocked("there are none");
}

/* A request to the kernel about the network, and its answer. */
struct request {
  struct nlmsghdr header;
  union {
    struct ifinfomsg link;
    struct ifaddrmsg address;
    struct rtmsg route;
  } body;
  char attributes[64];
};

static void add_attribute(struct request *request, unsigned short type, const void *value, unsigned short length) {
  struct rtattr attribute = {.rta_len = (unsigned short)RTA_LENGTH(length), .rta_type = type};
  char *end = (char *)request + NLMSG_ALIGN(request->header.nlmsg_len);
  memcpy(end, &attribute, sizeof attribute);
  memcpy(end + RTA_LENGTH(0), value, length);
  request->header.nlmsg_len = NLMSG_ALIGN(request->header.nlmsg_len) + (unsigned)RTA_SPACE(length);
}

static struct request request_of(unsigned short type, size_t body_bytes) {
  struct request request;
  memset(&request, 0, sizeof request);
  request.header.nlmsg_len = (unsigned)NLMSG_LENGTH(body_bytes);
  request.header.nlmsg_type = type;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
  return request;
}

/* Makes something, and takes it back at once with the request of type `undo`. */
static struct result make_in_network(struct request *request, unsigned short undo) {
  struct {
    struct nlmsghdr header;
    struct nlmsgerr error;
    char rest[256];
  } answer;
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return refused();
  bool is_answered = send(fd, request, request->header.nlmsg_len, 0) > 0 && recv(fd, &answer, sizeof answer, 0) > 0;
  errno = is_answered ? -answer.error.error : errno;
  int error = errno;
  struct result result = is_answered && error == 0 ? opened("it was made") : refused();
  request->header.nlmsg_type = undo;
  request->header.nlmsg_flags = NLM_F_REQUEST;
  if (result.verdict == OPEN) send(fd, request, request->header.nlmsg_len, 0);
  close(fd);
  errno = error;
  return result;
}

/* The kernel looks at the rights first: without such a device it has granted them. */
static struct result make_interface(const struct baits *baits) {
  (void)baits;
  static const char NAME[] = "tm-escape";
  static const char KIND[] = "dummy";
  struct request request = request_of(RTM_NEWLINK, sizeof request.body.link);
  add_attribute(&request, IFLA_IFNAME, NAME, sizeof NAME);
  struct {
    struct rtattr kind;
    char name[8];
  } info = {.kind = {.rta_len = (unsigned short)RTA_LENGTH(sizeof KIND), .rta_type = IFLA_INFO_KIND}};
  memcpy(info.name, KIND, sizeof KIND);
  add_attribute(&request, IFLA_LINKINFO, &info, sizeof info);
  struct result result = make_in_network(&request, RTM_DELLINK);
  return result.verdict == BLOCKED && errno == EOPNOTSUPP ? opened("it may, but the kernel has no such device") : result;
}

/* TEST-NET-1. */
static const struct in_addr NOBODY = {.s_addr = 0x010200C0};

static struct result make_address(const struct baits *baits) {
  (void)baits;
  struct request request = request_of(RTM_NEWADDR, sizeof request.body.address);
  request.body.address = (struct ifaddrmsg){.ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_index = 1};
  add_attribute(&request, IFA_LOCAL, &NOBODY, sizeof NOBODY);
  return make_in_network(&request, RTM_DELADDR);
}

static struct result make_route(const struct baits *baits) {
  (void)baits;
  struct request request = request_of(RTM_NEWROUTE, sizeof request.body.route);
  request.body.route = (struct rtmsg){.rtm_family = AF_INET,
                                      .rtm_dst_len = 32,
                                      .rtm_table = RT_TABLE_MAIN,
                                      .rtm_protocol = RTPROT_STATIC,
                                      .rtm_scope = RT_SCOPE_LINK,
                                      .rtm_type = RTN_UNICAST};
  int loopback = 1;
  add_attribute(&request, RTA_DST, &NOBODY, sizeof NOBODY);
  add_attribute(&request, RTA_OIF, &loopback, sizeof loopback);
  return make_in_network(&request, RTM_DELROUTE);
}

/* To what it is. */
static struct result set_interface(const struct baits *baits) {
  (void)baits;
  struct ifreq request = {.ifr_name = "lo"};
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return refused();
  struct result result = judged(ioctl(fd, SIOCGIFFLAGS, &request));
  if (result.verdict == OPEN) result = judged(ioctl(fd, SIOCSIFFLAGS, &request));
  close(fd);
  return result;
}

static struct result set_option(int level, int option, int value) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return refused();
  struct result result = judged(setsockopt(fd, level, option, &value, sizeof value));
  close(fd);
  return result;
}

static struct result mark_packets(const struct baits *baits) {
  (void)baits;
  return set_option(SOL_SOCKET, SO_MARK, 0);
}

static struct result take_addresses(const struct baits *baits) {
  (void)baits;
  return set_option(IPPROTO_IP, IP_TRANSPARENT, 1);
}

static struct result any_socket(const int (*kinds)[3], size_t count) {
  struct result result = blocked("");
  for (size_t i = 0; i < count && result.verdict == BLOCKED; i++) {
    int fd = socket(kinds[i][0], kinds[i][1] | SOCK_CLOEXEC, kinds[i][2]);
    result = judged(fd);
    if (fd >= 0) close(fd);
  }
  return result;
}

static struct result raw_sockets(const struct baits *baits) {
  (void)baits;
  static const int KINDS[][3] = {{AF_INET, SOCK_RAW, IPPROTO_RAW}, {AF_INET, SOCK_RAW, IPPROTO_TCP},
                                 {AF_INET6, SOCK_RAW, IPPROTO_RAW}, {AF_INET6, SOCK_RAW, IPPROTO_ICMPV6}};
  return any_socket(KINDS, COUNT_OF(KINDS));
}

static struct result packet_sockets(const struct baits *baits) {
  (void)baits;
  static const int KINDS[][3] = {{AF_PACKET, SOCK_RAW, 0x0300}, {AF_PACKET, SOCK_DGRAM, 0x0008}, {44 /* AF_XDP */, SOCK_RAW, 0}};
  return any_socket(KINDS, COUNT_OF(KINDS));
}

/* Families that know no network namespace, or reach hardware. */
static struct result rare_sockets(const struct baits *baits) {
  (void)baits;
  static const int KINDS[][3] = {
    {AF_ALG, SOCK_SEQPACKET, 0},  {AF_CAN, SOCK_RAW, 1},       {AF_TIPC, SOCK_SEQPACKET, 0}, {AF_BLUETOOTH, SOCK_RAW, 1},
    {AF_RDS, SOCK_SEQPACKET, 0},  {AF_NFC, SOCK_SEQPACKET, 1}, {AF_KEY, SOCK_RAW, 2},        {AF_RXRPC, SOCK_DGRAM, 2},
    {AF_PPPOX, SOCK_STREAM, 0},   {AF_X25, SOCK_SEQPACKET, 0}, {AF_PHONET, SOCK_DGRAM, 0},   {42 /* AF_QIPCRTR */, SOCK_DGRAM, 0},
  };
  return any_socket(KINDS, COUNT_OF(KINDS));
}

#define METADATA_LISTED(name, text)                                                                                    \
  {"metadata_" #name, "asks for the keys of this machine at " text, metadata_##name, 0, false},

static const struct attempt LIST[] = {
  METADATA(METADATA_LISTED)
  {"loopback_spellings", "connects to the host's loopback under other names of it", loopback_spellings, 0, false},
  {"private_routes", "has a way to private networks", private_routes, 0, false},
  {"neighbours", "has a way to everybody in the network", neighbours, 0, false},
  {"route_v6", "has a way to other machines by IPv6", route_v6, 0, false},
  {"interfaces", "looks for network devices besides loopback", interfaces, 0, false},
  {"host_sockets", "sees sockets of the host", host_sockets, 0, false},
  {"make_interface", "makes a network device", make_interface, 0, false},
  {"make_address", "gives itself an address", make_address, 0, false},
  {"make_route", "makes a route", make_route, 0, false},
  {"set_interface", "sets up a network device", set_interface, 0, false},
  {"mark_packets", "marks its packets, past the rules of a firewall", mark_packets, 0, false},
  {"take_addresses", "speaks for addresses that are not its own", take_addresses, 0, false},
  {"raw_sockets", "makes packets of any protocol", raw_sockets, 0, false},
  {"packet_sockets", "listens to the packets of others", packet_sockets, 0, false},
  {"rare_sockets", "makes sockets of rare families", rare_sockets, 0, false},
};

const struct attempts network_attempts = ATTEMPTS_OF(LIST);
