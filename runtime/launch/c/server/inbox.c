#include "server/inbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES_OF_NUMBER 4
#define HEADER_BYTES (4 * BYTES_OF_NUMBER)

/* Room for what is read at once; more only for a request that is larger, and only until it is taken. */
#define READ_BYTES 65536

static uint32_t number_at(const char *bytes) {
  const unsigned char *digits = (const unsigned char *)bytes;
  return (uint32_t)digits[0] | (uint32_t)digits[1] << 8 | (uint32_t)digits[2] << 16 | (uint32_t)digits[3] << 24;
}

static enum inbox_state broken(struct text *complaint, const char *why) {
  text_set(complaint, "%s", why);
  return INBOX_BROKEN;
}

/* Bytes of the request that is under way, as far as that is known. */
static size_t wanted_bytes(const struct inbox *inbox) {
  if (inbox->length - inbox->at < BYTES_OF_NUMBER) return READ_BYTES;
  size_t bytes = BYTES_OF_NUMBER + (size_t)number_at(inbox->bytes + inbox->at);
  return bytes < READ_BYTES ? READ_BYTES : bytes;
}

/* What lies between two places, which may be the same. */
static void wipe(struct inbox *inbox, size_t from, size_t to) {
  if (to > from) explicit_bzero(inbox->bytes + from, to - from);
}

/* What is left is less than one request, so it fits, with room for more. What was taken was wiped. */
static bool make_room(struct inbox *inbox) {
  size_t wanted = wanted_bytes(inbox);
  size_t left = inbox->length - inbox->at;
  char *bytes = inbox->size == wanted ? inbox->bytes : malloc(wanted);
  if (bytes == NULL) return false;
  if (left > 0) memmove(bytes, inbox->bytes + inbox->at, left);
  bool has_moved = bytes != inbox->bytes;
  wipe(inbox, has_moved || inbox->at > left ? inbox->at : left, inbox->length);
  if (has_moved) free(inbox->bytes);
  *inbox = (struct inbox){.fd = inbox->fd, .bytes = bytes, .size = wanted, .length = left};
  return true;
}

static void free_strings(struct request *request) {
  free(request->argv);
  request->argv = NULL;
}

enum inbox_state inbox_read(struct inbox *inbox, struct text *complaint) {
  if (!make_room(inbox)) return broken(complaint, "no memory for a request");
  ssize_t got = read(inbox->fd, inbox->bytes + inbox->length, inbox->size - inbox->length);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return INBOX_WAITS;
  if (got < 0) {
    text_set(complaint, "cannot read requests: %s", strerror(errno));
    return INBOX_BROKEN;
  }
  inbox->length += (size_t)got;
  return got == 0 ? INBOX_ENDED : INBOX_WAITS;
}

/* `count` strings from `at`; NULL when they do not end before `end`. */
static char *take_strings(char **strings, uint32_t count, char *at, const char *end) {
  for (uint32_t i = 0; i < count; i++) {
    char *nul = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;
    if (nul == NULL) return NULL;
    strings[i] = at;
    at = nul + 1;
  }
  return at;
}

/* `name, argument..., NULL, variable..., NULL` in one piece. */
static enum inbox_state parse(char *bytes, size_t length, struct request *request, struct text *complaint) {
  static char name[] = "taskmill-launcher";
  uint32_t arguments = number_at(bytes + BYTES_OF_NUMBER);
  uint32_t variables = number_at(bytes + 2 * BYTES_OF_NUMBER);
  char *at = bytes + 3 * BYTES_OF_NUMBER;
  const char *end = bytes + length;
  size_t at_most = (size_t)(end - at); /* a string has a byte at least */
  if (arguments > at_most || variables > at_most) return broken(complaint, "a malformed request: too few strings");
  *request = (struct request){.launch = number_at(bytes)};
  request->argv = calloc((size_t)arguments + variables + 3, sizeof *request->argv);
  if (request->argv == NULL) return broken(complaint, "no memory for the strings of a request");
  request->argv[0] = name;
  request->variables = request->argv + arguments + 2;
  at = take_strings(request->argv + 1, arguments, at, end);
  if (at != NULL) at = take_strings(request->variables, variables, at, end);
  if (at == end) return INBOX_HAS_REQUEST;
  free_strings(request);
  return broken(complaint, "a malformed request: its strings are not as many as it says");
}

enum inbox_state inbox_take(struct inbox *inbox, struct request *request, struct text *complaint) {
  size_t there = inbox->length - inbox->at;
  if (there < BYTES_OF_NUMBER) return INBOX_WAITS;
  size_t bytes = number_at(inbox->bytes + inbox->at);
  if (bytes < HEADER_BYTES - BYTES_OF_NUMBER) return broken(complaint, "a malformed request: too short");
  if (bytes > MAX_REQUEST_BYTES) return broken(complaint, "a malformed request: too long");
  if (there < BYTES_OF_NUMBER + bytes) return INBOX_WAITS;
  char *begin = inbox->bytes + inbox->at;
  inbox->at += BYTES_OF_NUMBER + bytes;
  enum inbox_state state = parse(begin + BYTES_OF_NUMBER, bytes, request, complaint);
  request->bytes = begin;
  request->length = BYTES_OF_NUMBER + bytes;
  return state;
}

void inbox_wipe(struct inbox *inbox, struct request *request) {
  size_t from = (size_t)(request->bytes - inbox->bytes);
  wipe(inbox, from, from + request->length);
  free_strings(request);
}

void inbox_wipe_rest(struct inbox *inbox) {
  wipe(inbox, inbox->at, inbox->length);
  inbox->length = inbox->at;
}
