/* The proxy of a sandbox whose network has rules, as the way out that it must not be. */
#ifndef NETWORK_PROXY_H
#define NETWORK_PROXY_H

#include "attempt.h"

/* Whether the proxy connects to `host`, which may be spelled in any way: with CONNECT and with SOCKS5. Nothing is sent on. */
struct result proxy_reaches(const struct baits *baits, const char *host, int port);

/* The answer to a request that goes through the proxy as it is, by SOCKS to a port of 127.0.0.1 unless that is 0. Its length. */
size_t proxy_answer(const struct baits *baits, int socks_port, const char *request, char *answer, size_t size);

#endif
