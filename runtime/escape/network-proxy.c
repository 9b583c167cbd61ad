#include "network-proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sockets.h"

#define REQUEST_BYTES 1024

static int call_proxy(const struct baits *baits) { return call_loopback(baits->proxy_port); }

/* Sends bytes to the proxy and reads the beginning of its answer, as a string. The number of its bytes. */
static size_t ask(const struct baits *baits, const char *bytes, size_t length, char *answer, size_t size) {
  int fd = call_proxy(baits);
  ssize_t got = fd >= 0 && send(fd, bytes, length, MSG_NOSIGNAL) == (ssize_t)length ? recv(fd, answer, size - 1, 0) : 0;
  if (fd >= 0) close(fd);
  answer[got < 0 ? 0 : got] = '\0';
  return got < 0 ? 0 : (size_t)got;
}

/* An answer of HTTP is a way through with any 2xx. */
static struct result ask_http(const struct baits *baits, const char *request) {
  char answer[64];
  size_t got = ask(baits, request, strlen(request), answer, sizeof answer);
  if (got == 0) return blocked("it closed the connection");
  answer[strcspn(answer, "\r\n\t")] = '\0';
  bool is_through = strncmp(answer, "HTTP/1.", 7) != 0 || answer[9] == '2';
  return is_through ? opened(answer) : blocked(answer);
}

static struct result connect_http(const struct baits *baits, const char *host, int port) {
  char request[REQUEST_BYTES];
  snprintf(request, sizeof request, "CONNECT %s:%d HTTP/1.1\r\nHost: %s:%d\r\n\r\n", host, port, host, port);
  return ask_http(baits, request);
}

/* SOCKS5 without a password: a greeting, and a command to a name or an address as it stands in `to`. */
static struct result ask_socks(const struct baits *baits, char command, const char *to, size_t length, int port) {
  char request[REQUEST_BYTES] = {5, 1, 0, 5, command, 0};
  memcpy(request + 6, to, length);
  request[6 + length] = (char)(port >> 8);
  request[7 + length] = (char)port;
  int fd = call_proxy(baits);
  if (fd < 0) return refused();
  char answer[16] = {0};
  bool is_greeted = send(fd, request, 3, MSG_NOSIGNAL) == 3 && recv(fd, answer, 2, MSG_WAITALL) == 2 && answer[1] == 0;
  bool is_answered = is_greeted && send(fd, request + 3, 5 + length, MSG_NOSIGNAL) > 0 && recv(fd, answer, 4, MSG_WAITALL) == 4;
  close(fd);
  return is_answered && answer[1] == 0 ? opened("it was taken by SOCKS") : blocked("refused by SOCKS");
}

size_t proxy_answer(const struct baits *baits, int socks_port, const char *request, char *answer, size_t size) {
  const char hello[] = {5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1, (char)(socks_port >> 8), (char)socks_port};
  char given[10];
  int fd = call_proxy(baits);
  if (fd < 0) return 0;
  bool is_through = socks_port == 0 || (send(fd, hello, 3, MSG_NOSIGNAL) == 3 && recv(fd, given, 2, MSG_WAITALL) == 2 &&
                                        send(fd, hello + 3, 10, MSG_NOSIGNAL) == 10 &&
                                        recv(fd, given, 10, MSG_WAITALL) == 10 && given[1] == 0);
  size_t length = strlen(request);
  bool is_sent = is_through && send(fd, request, length, MSG_NOSIGNAL) == (ssize_t)length;
  size_t got = is_sent ? read_until_end(fd, answer, size - 1) : 0;
  answer[got] = '\0';
  close(fd);
  return got;
}

static size_t socks_name(char *to, const char *name) {
  size_t length = strlen(name);
  to[0] = 3;
  to[1] = (char)length;
  memcpy(to + 2, name, length);
  return length + 2;
}

static struct result connect_socks(const struct baits *baits, const char *host, int port) {
  char to[256];
  char plain[128];
  size_t length = strlen(host);
  if (host[0] == '[') snprintf(plain, sizeof plain, "%.*s", (int)length - 2, host + 1);
  else snprintf(plain, sizeof plain, "%s", host);
  struct result result = ask_socks(baits, 1, to, socks_name(to, plain), port);
  if (result.verdict == OPEN) return result;
  struct in_addr v4;
  struct in6_addr v6;
  if (inet_aton(plain, &v4) != 0) {
    to[0] = 1;
    memcpy(to + 1, &v4, sizeof v4);
    return ask_socks(baits, 1, to, 1 + sizeof v4, port);
  }
  if (inet_pton(AF_INET6, plain, &v6) != 1) return result;
  to[0] = 4;
  memcpy(to + 1, &v6, sizeof v6);
  return ask_socks(baits, 1, to, 1 + sizeof v6, port);
}

struct result proxy_reaches(const struct baits *baits, const char *host, int port) {
  struct result result = connect_http(baits, host, port);
  return result.verdict == OPEN ? result : connect_socks(baits, host, port);
}

static struct result no_proxy(void) { return not_applicable("there is no proxy"); }

static const char *const LOOPBACK[] = {
  "127.0.0.1", "127.1",      "0x7f.1",   "2130706433",          "017700000001",      "0.0.0.0",        "127.0.0.1.",
  "[::1]",     "[::]",       "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "localhost", "localhost.",
  "LOCALHOST", "a.localhost", "127.0.0.1%00.example.com",
};

static struct result reaches_loopback(const struct baits *baits, int port) {
  if (baits->proxy_port == 0) return no_proxy();
  if (port == 0) return not_applicable("nobody listens on the host");
  struct result result = blocked("");
  for (size_t i = 0; i < COUNT_OF(LOOPBACK) && result.verdict == BLOCKED; i++) result = proxy_reaches(baits, LOOPBACK[i], port);
  return result;
}

static struct result proxy_loopback(const struct baits *baits) { return reaches_loopback(baits, baits->tcp_port); }

static struct result proxy_service(const struct baits *baits) { return reaches_loopback(baits, baits->service_port); }

/* The answer to CONNECT has to be `status`: any other shows that the proxy went further. */
static struct result answers_only(const struct baits *baits, const char *target, const char *status) {
  char request[REQUEST_BYTES], answer[64];
  snprintf(request, sizeof request, "CONNECT %s HTTP/1.1\r\n\r\n", target);
  ask(baits, request, strlen(request), answer, sizeof answer);
  answer[strcspn(answer, "\r\n\t")] = '\0';
  return strncmp(answer, "HTTP/1.1 ", 9) == 0 && strncmp(answer + 9, status, 3) == 0 ? blocked(answer) : opened(answer);
}

/* The name has every address of the host, also those of interfaces without carrier, and local routes. */
static struct result proxy_addresses(const struct baits *baits) {
  char target[64];
  if (baits->proxy_port == 0) return no_proxy();
  snprintf(target, sizeof target, "addresses.escape:%d", baits->service_port);
  return answers_only(baits, target, "403");
}

/* The name has no address, but one with the search list, which is then refused. */
static struct result proxy_search(const struct baits *baits) {
  return baits->proxy_port == 0 ? no_proxy() : answers_only(baits, "search.escape:80", "502");
}

static struct result proxy_private(const struct baits *baits) {
  static const char *const HOSTS[] = {"10.0.0.1",     "172.16.0.1", "172.17.0.1", "192.168.0.1", "100.64.0.1", "198.18.0.1",
                                      "224.0.0.251", "255.255.255.255", "[fe80::1]",  "[fd00::1]",   "[ff02::1]"};
  if (baits->proxy_port == 0) return no_proxy();
  struct result result = blocked("");
  for (size_t i = 0; i < COUNT_OF(HOSTS) && result.verdict == BLOCKED; i++) result = proxy_reaches(baits, HOSTS[i], 9);
  return result;
}

/* Requests that two readers understand in two ways. */
static struct result confuse(const struct baits *baits, const char *const *formats, size_t count) {
  if (baits->proxy_port == 0) return no_proxy();
  if (baits->service_port == 0) return not_applicable("nobody stands for the service");
  struct result result = blocked("");
  for (size_t i = 0; i < count && result.verdict == BLOCKED; i++) {
    char request[REQUEST_BYTES];
    char port[8];
    snprintf(port, sizeof port, "%d", baits->service_port);
    size_t length = 0;
    for (const char *at = formats[i]; *at != '\0' && length < sizeof request - sizeof port; at++) {
      if (*at != '$') request[length++] = *at;
      else for (const char *digit = port; *digit != '\0'; digit++) request[length++] = *digit;
    }
    request[length] = '\0';
    result = ask_http(baits, request);
  }
  return result;
}

/* A `$` stands for the port. */
#define CONFUSION(name, ...)                                                                                           \
  static struct result name(const struct baits *baits) {                                                               \
    static const char *const FORMATS[] = {__VA_ARGS__};                                                                \
    return confuse(baits, FORMATS, COUNT_OF(FORMATS));                                                                 \
  }

CONFUSION(proxy_get, "GET http://127.0.0.1:$/ HTTP/1.1\r\nHost: 127.0.0.1:$\r\n\r\n",
          "GET http://localhost:$/ HTTP/1.1\r\nHost: localhost:$\r\n\r\n",
          "GET http://[::ffff:127.0.0.1]:$/ HTTP/1.1\r\nHost: example.invalid\r\n\r\n",
          "GET HTTP://LOCALHOST.:$/ HTTP/1.0\r\n\r\n")
CONFUSION(proxy_origin, "GET / HTTP/1.1\r\nHost: 127.0.0.1:$\r\n\r\n", "GET //127.0.0.1:$/ HTTP/1.1\r\nHost: 127.0.0.1:$\r\n\r\n",
          "OPTIONS * HTTP/1.1\r\nHost: 127.0.0.1:$\r\n\r\n")
CONFUSION(proxy_two_hosts, "GET http://127.0.0.1:$/ HTTP/1.1\r\nHost: example.invalid\r\nHost: 127.0.0.1:$\r\n\r\n",
          "GET http://192.0.2.1/ HTTP/1.1\r\nHost: 192.0.2.1\r\nHost: 127.0.0.1:$\r\n\r\n",
          "CONNECT 192.0.2.1:443 HTTP/1.1\r\nHost: 127.0.0.1:$\r\nHost: 192.0.2.1:443\r\n\r\n")
CONFUSION(proxy_user, "GET http://example.invalid@127.0.0.1:$/ HTTP/1.1\r\nHost: example.invalid\r\n\r\n",
          "GET http://127.0.0.1:$\\@example.invalid/ HTTP/1.1\r\nHost: example.invalid\r\n\r\n",
          "GET http://127.0.0.1:$#@example.invalid/ HTTP/1.1\r\nHost: example.invalid\r\n\r\n")
CONFUSION(proxy_smuggle,
          "POST http://127.0.0.1:$/ HTTP/1.1\r\nHost: 127.0.0.1:$\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
          "POST http://127.0.0.1:$/ HTTP/1.1\r\nHost: 127.0.0.1:$\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
          "GET http://127.0.0.1:$/ HTTP/1.1\r\nHost: 127.0.0.1:$\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
          "GET http://127.0.0.1:$/ HTTP/1.1\nHost: 127.0.0.1:$\n\n")
CONFUSION(proxy_lines, "CONNECT 127.0.0.1:$\tHTTP/1.1\r\n\r\n", "CONNECT  127.0.0.1:$ HTTP/1.1\r\n\r\n",
          "CONNECT 127.0.0.1:$\r\n\r\n", "connect 127.0.0.1:$ http/1.1\r\n\r\n",
          "CONNECT 127.0.0.1:$ HTTP/1.1\r\n folded: 1\r\n\r\n", "\r\n\r\nCONNECT 127.0.0.1:$ HTTP/1.1\r\n\r\n")
CONFUSION(proxy_h2, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET http://127.0.0.1:$/ HTTP/1.1\r\nHost: 127.0.0.1:$\r\nConnection: "
          "Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n")

static struct result proxy_socks_others(const struct baits *baits) {
  if (baits->proxy_port == 0) return no_proxy();
  static const char ANY[] = {1, 0, 0, 0, 0};
  struct result result = ask_socks(baits, 2, ANY, sizeof ANY, 0); /* to be connected to */
  return result.verdict == OPEN ? result : ask_socks(baits, 3, ANY, sizeof ANY, 0); /* datagrams */
}

static struct result proxy_socks4(const struct baits *baits) {
  if (baits->proxy_port == 0) return no_proxy();
  if (baits->tcp_port == 0) return not_applicable("nobody listens on the host");
  const char request[] = {4, 1, (char)(baits->tcp_port >> 8), (char)baits->tcp_port, 127, 0, 0, 1, 0};
  char answer[16] = "";
  size_t got = ask(baits, request, sizeof request, answer, sizeof answer);
  return got >= 2 && answer[0] == 0 && answer[1] == 0x5a ? opened("it was taken by SOCKS 4") : blocked("refused by SOCKS 4");
}

static const struct attempt LIST[] = {
  {"proxy_loopback", "has the proxy connect to the host's loopback, in many spellings", proxy_loopback, 0, false},
  {"proxy_service", "has it connect to taskmill's own API", proxy_service, 0, false},
  {"proxy_addresses", "has it connect to that API at every address of the host", proxy_addresses, 0, false},
  {"proxy_search", "has it look up another name than it checks, by a search list", proxy_search, 0, false},
  {"proxy_private", "has it connect to private networks", proxy_private, 0, false},
  {"proxy_get", "has it ask taskmill's own API, without a tunnel", proxy_get, 0, false},
  {"proxy_origin", "asks as if the proxy were that API", proxy_origin, 0, false},
  {"proxy_two_hosts", "names two hosts in a request to the proxy", proxy_two_hosts, 0, false},
  {"proxy_user", "hides the host behind the name of a user", proxy_user, 0, false},
  {"proxy_smuggle", "hides a request in the body of another", proxy_smuggle, 0, false},
  {"proxy_lines", "sends the proxy lines that are malformed", proxy_lines, 0, false},
  {"proxy_h2", "speaks HTTP/2 to it", proxy_h2, 0, false},
  {"proxy_socks_others", "asks it by SOCKS for more than connections", proxy_socks_others, 0, false},
  {"proxy_socks4", "speaks an older SOCKS to it, which knows only addresses", proxy_socks4, 0, false},
};

const struct attempts proxy_attempts = ATTEMPTS_OF(LIST);
